"""Mountain Cars in lanes, any other environment by Gymnasium; seeds and action spaces."""
