"""Render MuJoCo's frames as Gymnasium does, but draw the shadow map only where something moved.

`mjr_render` clears a map of 4096x4096 texels and draws the floor into it for each frame. Its
framebuffer can be replaced by one of a single texel, in which that pass draws nothing. The map,
which it still reads, is then repaired here: the floor, drawn once, is copied over the place where
the robot was, and the robot is drawn again by the lists of the context. Gymnasium reads a depth
image too, which nobody needs.
Source: src/render/classic/render_gl3.c and render_context.c of MuJoCo, and `OffScreenViewer` in
gymnasium/envs/mujoco/mujoco_rendering.py (1.4.0).
"""

import functools
import sys
from collections.abc import Callable
from weakref import WeakKeyDictionary, ref

import numpy as np

from goalreel import cli
from goalreel.errors import InexactFrameError

_CHECK_EVERY = 16  # frames, of which one is compared with Gymnasium's
_MARGIN = 4  # texels around a geom
# The order of the lists of shapes in a context.
_SPHERE, _TOP, _BOTTOM, _CYLINDER, _OPEN_CYLINDER = range(5)


def renders_again(function: Callable) -> Callable:
    """Make a function that renders start again if it raises InexactFrameError."""

    @functools.wraps(function)
    def render(*arguments: object) -> object:
        try:
            return function(*arguments)
        except InexactFrameError as error:
            cli.say(f"{error} Gymnasium renders this shard again.")
            return function(*arguments)

    return render


def is_mujoco(env) -> bool:
    """Return whether Gymnasium's own renderer of MuJoCo renders an unwrapped environment."""
    base = sys.modules.get("gymnasium.envs.mujoco.mujoco_env")
    if base is None or getattr(type(env), "render", None) is not base.MujocoEnv.render:
        return False
    return type(env.mujoco_renderer).__module__ == "gymnasium.envs.mujoco.mujoco_rendering"


def use_context(env) -> object:
    """Make the OpenGL context of an environment the current one; return its viewer, or None."""
    # Gymnasium renders in that of the newest environment, whose shadow map it overwrites.
    viewer = getattr(getattr(env, "mujoco_renderer", None), "viewer", None)
    if viewer is not None:
        viewer.make_context_current()
    return viewer


def free_context(env) -> None:
    """Free what MuJoCo draws an environment with. Later it would free it in the wrong context."""
    viewer = use_context(env)
    if getattr(viewer, "is_shared", False):
        env.mujoco_renderer._viewers.clear()  # so that it does not close it
    elif viewer is not None:
        viewer.con.free()


# The arrays of mjData that `mjv_updateScene` reads. After a step they may be older than qpos, which
# therefore does not give them back: those of a Runge-Kutta step are from its last stage.
_POSES = ("geom_xpos", "geom_xmat", "site_xpos", "site_xmat", "cam_xpos", "cam_xmat", "light_xpos")
_POSES += ("light_xdir", "subtree_com", "xpos", "xquat", "flexvert_xpos", "wrap_xpos", "wrap_obj")
_POSES += ("ten_wrapadr", "ten_wrapnum", "ten_length", "actuator_length", "sensordata")


def poses(env) -> np.ndarray:
    """Return what MuJoCo draws of an unwrapped environment, (num_poses,) float64; others have 0."""
    if not is_mujoco(env):
        return np.empty(0)
    return np.concatenate([getattr(env.data, name).ravel() for name in _POSES])


def set_poses(env, values: np.ndarray) -> None:
    """Make an unwrapped environment draw poses."""
    arrays = [getattr(env.data, name) for name in _POSES]
    ends = np.cumsum([array.size for array in arrays])[:-1]
    for array, part in zip(arrays, np.split(values, ends), strict=True):
        array.flat = part


def renderer_name(env) -> str:
    """Return the name of the OpenGL renderer of an environment, "" if it has not rendered by it."""
    if use_context(env) is None:
        return ""
    from OpenGL import GL

    return GL.glGetString(GL.GL_RENDERER).decode()


def scene_of(env, shared: list["MujocoScene"]) -> "MujocoScene":
    """Return the scene that draws an environment: a shared one, or a new one that it may share."""
    # An environment of the user's may add markers to its viewer, which is then its own.
    if not type(env).__module__.startswith("gymnasium.envs.mujoco."):
        return MujocoScene(env)
    for scene in shared:
        if np.array_equal(scene.model, _bytes(env.model)):
            return scene
    shared.append(MujocoScene(env))
    env.mujoco_renderer.viewer.is_shared = True
    return shared[-1]


class MujocoScene:
    """Renders the frames of environments with equal models in one OpenGL context."""

    _is_exact = True  # of one scene until its first frame differs, of all until a later one does

    def __init__(self, env):
        self._viewer, self.model = env.mujoco_renderer._get_viewer("rgb_array"), _bytes(env.model)
        self._cameras = WeakKeyDictionary({env: self._viewer.cam})  # by environment
        self._count, self._shadow = 0, None
        self._viewer.is_redrawn = False  # whether MuJoCo has drawn the whole shadow map
        self._viewer.render = functools.partial(_redraw, ref(self._viewer))

    def use(self, env) -> None:
        """Show an environment from now on, in a context that it may share."""
        import mujoco

        renderer, viewer = env.mujoco_renderer, self._viewer
        viewer.make_context_current()
        viewer.model, viewer.data = env.model, env.data
        renderer.viewer = renderer._viewers["rgb_array"] = viewer
        if env in self._cameras:
            viewer.cam = self._cameras[env]
        else:  # as when Gymnasium makes a viewer
            viewer.cam = self._cameras[env] = mujoco.MjvCamera()
            viewer._init_camera()
            renderer._set_cam_config()

    def frame(self, env) -> np.ndarray:
        """Return the frame of `env.render()`, (H, W, 3) uint8.

        Gymnasium renders all if the first frame differs, or cannot be drawn. Raises
        InexactFrameError if a later one differs.
        """
        self.use(env)
        if not self._is_exact or self._viewer._markers or self._viewer._overlays:
            return env.render()
        number, ours = self._count, None
        self._count += 1
        try:
            ours = self._render(env)
        except Exception:  # another version of MuJoCo, PyOpenGL or the driver
            if number:
                raise
        if number % _CHECK_EVERY:
            return ours
        is_redrawn, theirs = self._viewer.is_redrawn, env.render()
        if np.array_equal(ours, theirs):
            self._viewer.is_redrawn = is_redrawn  # with the same poses
            return ours
        if number:
            MujocoScene._is_exact = False
            raise InexactFrameError(
                f"env: Frame {number} of {env.spec.id} differs from that of env.render(). "
                "Please report this with the versions of mujoco and of OpenGL."
            )
        self._is_exact = False
        return theirs

    def _render(self, env) -> np.ndarray:
        import mujoco

        viewer, camera = self._viewer, env.mujoco_renderer.camera_id
        if camera is not None:
            kinds = mujoco.mjtCamera
            viewer.cam.type = kinds.mjCAMERA_FREE if camera == -1 else kinds.mjCAMERA_FIXED
            viewer.cam.fixedcamid = camera
        scene = viewer.model, viewer.data, viewer.vopt, viewer.pert, viewer.cam
        mujoco.mjv_updateScene(*scene, mujoco.mjtCatBit.mjCAT_ALL, viewer.scn)
        framebuffer = viewer.con.shadowFBO
        try:
            if self._shadow is None:
                self._shadow = ShadowMap(viewer)
            viewer.is_redrawn = not self._shadow.repair(viewer.is_redrawn)
            if not viewer.is_redrawn:
                viewer.con.shadowFBO = self._shadow.texel
            mujoco.mjr_render(viewer.viewport, viewer.scn, viewer.con)
        finally:
            viewer.con.shadowFBO = framebuffer
        pixels = np.empty((viewer.viewport.height, viewer.viewport.width, 3), np.uint8)
        mujoco.mjr_readPixels(pixels.reshape(-1), None, viewer.viewport, viewer.con)
        return pixels[::-1]


def _redraw(viewer: ref, *arguments: object, **named: object) -> object:
    # A strong reference would be a cycle, and MuJoCo would free the context later, in another one.
    viewer().is_redrawn = True
    return type(viewer()).render(viewer(), *arguments, **named)


class ShadowMap:
    """The shadow map of a context, for one directional light with shadows that stands still."""

    def __init__(self, viewer):
        """Draw the floor, given a viewer whose scene is up to date."""
        import mujoco

        self._scene, self._context, self._kinds = viewer.scn, viewer.con, mujoco.mjtGeom
        self._decor, self._size = mujoco.mjtCatBit.mjCAT_DECOR, viewer.con.shadowSize
        self._shapes = {  # the kinds of geoms that are drawn here besides planes
            self._kinds.mjGEOM_SPHERE: _SPHERE,
            self._kinds.mjGEOM_ELLIPSOID: _SPHERE,
            self._kinds.mjGEOM_CAPSULE: _OPEN_CYLINDER,
            self._kinds.mjGEOM_CYLINDER: _CYLINDER,
        }
        lights = [light for light in viewer.scn.lights[: viewer.scn.nlight] if light.castshadow]
        is_lit = [light.type for light in lights] == [mujoco.mjtLightType.mjLIGHT_DIRECTIONAL]
        self._is_known = is_lit and self._size and not viewer.scn.nskin
        if not self._is_known:
            return
        (self._light,) = lights
        self._place = tuple(self._light.pos), tuple(self._light.dir)
        self._view = _view_along(self._light.dir)
        num_geoms, self._scene.ngeom = self._scene.ngeom, 0
        mujoco.mjr_render(viewer.viewport, self._scene, self._context)  # sets OpenGL's state
        self._scene.ngeom = num_geoms
        self.texel, _ = self._new_target(1)
        floor_map, self._floor = self._new_target(self._size)
        self._box = self._whole = 0, 0, self._size, self._size  # texels with the last geoms
        floor = [geom for geom in self._geoms() if geom.type == self._kinds.mjGEOM_PLANE]
        self._draw(floor_map, floor, self._whole)

    def repair(self, is_redrawn: bool) -> bool:
        """Draw the geoms of the scene, after MuJoCo itself has drawn the map if `is_redrawn`.

        Return whether that is possible.
        """
        from OpenGL import GL

        if not self._is_known or (tuple(self._light.pos), tuple(self._light.dir)) != self._place:
            return False
        geoms = [geom for geom in self._geoms() if geom.type != self._kinds.mjGEOM_PLANE]
        if not {geom.type for geom in geoms} <= self._shapes.keys():
            return False
        box = self._box_of(geoms)
        for x, y, width, height in (self._whole if is_redrawn else self._box, box):
            place = GL.GL_TEXTURE_2D, 0, x, y, 0
            size = width, height, 1
            GL.glCopyImageSubData(self._floor, *place, self._context.shadowTex, *place, *size)
        self._box = box
        self._draw(self._context.shadowFBO, geoms, box)
        return True

    def _geoms(self) -> list:
        geoms = self._scene.geoms[: self._scene.ngeom]
        return [geom for geom in geoms if geom.category != self._decor]

    def _new_target(self, size: int) -> tuple[int, int]:
        """Return an empty framebuffer of size x size texels, and its depth texture."""
        from OpenGL import GL

        framebuffer, texture = GL.glGenFramebuffers(1), GL.glGenTextures(1)
        GL.glBindTexture(GL.GL_TEXTURE_2D, self._context.shadowTex)
        level = GL.GL_TEXTURE_2D, 0, GL.GL_TEXTURE_INTERNAL_FORMAT
        kind = int(GL.glGetTexLevelParameteriv(*level))
        GL.glBindTexture(GL.GL_TEXTURE_2D, texture)
        GL.glTexStorage2D(GL.GL_TEXTURE_2D, 1, kind, size, size)
        GL.glBindTexture(GL.GL_TEXTURE_2D, 0)
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, framebuffer)
        depth = GL.GL_DEPTH_ATTACHMENT, GL.GL_TEXTURE_2D, texture, 0
        GL.glFramebufferTexture2D(GL.GL_FRAMEBUFFER, *depth)
        GL.glDrawBuffer(GL.GL_NONE)
        GL.glReadBuffer(GL.GL_NONE)
        GL.glClear(GL.GL_DEPTH_BUFFER_BIT)
        return int(framebuffer), int(texture)

    def _box_of(self, geoms: list) -> tuple[int, int, int, int]:
        """Return the texels that geoms may cover: left, bottom, width and height."""
        places = np.array([geom.pos for geom in geoms]) - self._light.pos
        places = places @ self._view[:2, :3].T
        reach = np.array([[geom.size.sum()] for geom in geoms])
        ends = np.array([(places - reach).min(axis=0), (places + reach).max(axis=0)])
        ends = 1 + (ends / self._context.shadowClip + 1) / 2 * (self._size - 2)
        ends += [[-_MARGIN], [_MARGIN]]
        low, high = np.clip(ends, 0, self._size).astype(int).tolist()
        return (*low, high[0] - low[0], high[1] - low[1])

    def _draw(self, framebuffer: int, geoms: list, box: tuple) -> None:
        """Draw geoms inside of a box as `mjr_render` does, which has set most of the state."""
        import mujoco
        from OpenGL import GL

        camera, half = self._scene.camera[0], self._context.shadowClip
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, framebuffer)
        GL.glScissor(*box)
        GL.glViewport(1, 1, self._size - 2, self._size - 2)
        GL.glMatrixMode(GL.GL_PROJECTION)
        GL.glLoadIdentity()
        GL.glTranslatef(0, 0, 0.5)
        GL.glScalef(1, 1, -0.5)
        GL.glOrtho(-half, half, -half, half, camera.frustum_near, camera.frustum_far)
        GL.glMatrixMode(GL.GL_MODELVIEW)
        GL.glLoadMatrixf(self._view.T.copy())
        GL.glTranslatef(*(-self._light.pos).tolist())
        GL.glColorMask(0, 0, 0, 0)
        GL.glPolygonOffset(-1.5, -4.0)
        GL.glEnable(GL.GL_SCISSOR_TEST)
        GL.glEnable(GL.GL_POLYGON_OFFSET_FILL)
        GL.glDisable(GL.GL_LIGHTING)
        GL.glDisable(GL.GL_CULL_FACE)
        for geom in geoms:
            self._draw_geom(geom)
        GL.glDisable(GL.GL_SCISSOR_TEST)
        GL.glDisable(GL.GL_POLYGON_OFFSET_FILL)
        GL.glColorMask(1, 1, 1, 1)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)

    def _draw_geom(self, geom) -> None:
        from OpenGL import GL

        shapes, (a, b, c) = self._context.baseBuiltin, geom.size
        place = np.eye(4, dtype=np.float32)
        place[:3, :3] = geom.mat.T
        GL.glPushMatrix()
        GL.glTranslatef(*geom.pos.tolist())
        GL.glMultMatrixf(place)
        if geom.type == self._kinds.mjGEOM_PLANE:
            if geom.dataid < 0:  # the first list has no size
                GL.glScalef(a, b, 1)
            GL.glCallList(self._context.basePlane + geom.dataid + 1)
        else:
            GL.glScalef(a, b, c)
            GL.glCallList(shapes + self._shapes[geom.type])
        if geom.type == self._kinds.mjGEOM_CAPSULE:
            radius = np.float32(0.5 * float(a + b))  # the rounding of C
            GL.glScalef(1, 1, radius / c)
            GL.glTranslatef(0, 0, (c - radius) / radius)
            GL.glCallList(shapes + _TOP)
            GL.glTranslatef(0, 0, 2 * (radius - c) / radius)
            GL.glCallList(shapes + _BOTTOM)
        GL.glPopMatrix()


def _bytes(model) -> np.ndarray:
    """Return all that makes a model, (size,) uint8."""
    import mujoco

    content = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, content)
    return content


def _view_along(direction: np.ndarray) -> np.ndarray:
    """Return the matrix of a view in a direction, (4, 4) float32."""
    forward = np.asarray(direction, np.float32)
    forward /= np.float32(np.linalg.norm(forward))
    axis = np.array([1, 0, 0] if abs(forward[0]) < 0.9 else [0, 1, 0], np.float32)
    up = np.cross(axis, forward)
    side = np.cross(forward, up / np.linalg.norm(up))
    side /= np.linalg.norm(side)
    view = np.eye(4, dtype=np.float32)
    view[:3, :3] = side, np.cross(side, forward), -forward
    return view
