"""H.264 streams put together from coded pictures, in place of being encoded frame by frame.

bits and nal hold what all of a stream is made of; parameter_sets and slices, the headers that all
of goalreel's assembled films share; intra takes coded I slices from x264.
"""
