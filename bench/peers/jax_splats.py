"""Gaussian splats in JAX, by tiles: every tile gathers the splats whose outline meets it, by distance,
and composes them for all its pixels at once. Lists have one length, that of the longest, which is
found beforehand. Tiles go one by one and are computed again on the way back, so that a tile stays in
the cache, or all at once, or entry by entry of all lists."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

CUTOFF, THRESHOLD, GAMMA = 1 / 255, 1e-4, 2.2
POSITION, UP = np.array([0.3, 0.2, -4.0]), np.array([0.0, 1.0, 0.0])
BACKGROUND = np.array([0.1, 0.2, 0.3], np.float32)
FIELD_OF_VIEW = 45


def unit(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


class Camera:
    def __init__(self, width, height, tile):
        self.forward = unit(-POSITION)
        self.right = unit(np.cross(UP, self.forward))
        self.above = np.cross(self.forward, self.right)
        self.focal = 0.5 * height / np.tan(np.radians(FIELD_OF_VIEW) / 2)
        self.size, self.tile = (width, height), tile
        self.tiles = (-(-width // tile), -(-height // tile))
        x, y = np.meshgrid(np.arange(self.tiles[0] * tile), np.arange(self.tiles[1] * tile))
        plane = np.stack([(x + 0.5 - width / 2) / self.focal, (y + 0.5 - height / 2) / self.focal], -1)
        rays = unit(plane[..., :1] * self.right + plane[..., 1:] * self.above + self.forward)
        self.plane = self.by_tile(plane)
        self.rays = self.by_tile(rays).astype(np.float32)

    def by_tile(self, image):
        """[rows, columns, n] as [tiles, pixels, n]."""
        across, down = self.tiles
        blocks = image.reshape(down, self.tile, across, self.tile, -1).swapaxes(1, 2)
        return blocks.reshape(down * across, self.tile * self.tile, -1)

    def image(self, tiles):
        """The inverse, cut to the image."""
        across, down = self.tiles
        rows = tiles.reshape(down, across, self.tile, self.tile, -1).swapaxes(1, 2)
        whole = rows.reshape(down * self.tile, across * self.tile, -1)
        return whole[: self.size[1], : self.size[0]]


def rotation(q):
    w, x, y, z = jnp.moveaxis(q / jnp.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    rows = [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def shapes(p):
    """What rays need to know of splats, [N, 16]: A, A·(camera - μ), opacity, colour."""
    offset = POSITION.astype(np.float32) - p["positions"].reshape(-1, 3)
    inverse = jnp.exp(-p["scales"].reshape(-1, 3))
    a = inverse[:, :, None] * rotation(p["rotations"].reshape(-1, 4)).swapaxes(1, 2)
    origin = jnp.einsum("nij,nj->ni", a, offset)
    x, y, z = jnp.moveaxis(-offset / jnp.linalg.norm(offset, axis=-1, keepdims=True), -1, 0)
    basis = jnp.stack([jnp.full_like(x, 0.28209479177387814), -0.4886025119029199 * y,
                       0.4886025119029199 * z, -0.4886025119029199 * x], -1)
    color = 0.5 + jnp.einsum("nk,nkc->nc", basis, p["sh"].reshape(len(x), -1, 3))
    opacity = jax.nn.sigmoid(p["opacities"])[:, None]
    return jnp.concatenate([a.reshape(-1, 9), origin, opacity, color], -1)


def boxes(p, camera):
    """Bounding boxes of the splats' outlines on the plane at distance 1, and their distance."""
    offset = POSITION.astype(np.float32) - p["positions"].reshape(-1, 3)
    axes = jnp.asarray(np.stack([camera.right, camera.above, camera.forward]), jnp.float32)
    m = -offset @ axes.T
    opacity = jax.nn.sigmoid(p["opacities"])
    support = jnp.sqrt(-2 * jnp.log(jnp.minimum(CUTOFF / opacity, 1)))[:, None, None]
    spread = jnp.exp(p["scales"].reshape(-1, 1, 3)) * support
    sides = jnp.einsum("ij,njk->nik", axes, rotation(p["rotations"].reshape(-1, 4))) * spread
    d = jnp.einsum("nik,njk->nij", sides, sides) - m[:, :, None] * m[:, None, :]
    d33 = d[:, 2, 2]
    centre = d[:, :2, 2] / d33[:, None]
    diagonal = jnp.stack([d[:, 0, 0], d[:, 1, 1]], -1)
    half = jnp.sqrt(jnp.maximum(d[:, :2, 2] ** 2 - diagonal * d33[:, None], 0)) / -d33[:, None]
    in_front = (d33 < 0)[:, None]
    low = jnp.where(in_front, centre - 1.001 * half, -jnp.inf)
    high = jnp.where(in_front, centre + 1.001 * half, jnp.inf)
    seen = (opacity >= CUTOFF) & (m[:, 2] > 1e-4)
    return jnp.where(seen[:, None], low, jnp.inf), high, jnp.sum(offset * offset, -1)


def meeting(p, camera):
    """Which splats, by distance, meet which tiles: [tiles, N], and the order."""
    low, high, distance = boxes(p, camera)
    order = jnp.argsort(distance)
    first = jnp.asarray(camera.plane.min(1), jnp.float32)[:, None]
    last = jnp.asarray(camera.plane.max(1), jnp.float32)[:, None]
    return jnp.all((low[order] <= last) & (high[order] >= first), -1), order


def lists(p, camera, length):
    met, order = meeting(p, camera)
    places = jnp.cumsum(met, axis=1)
    wanted = jnp.arange(1, length + 1)
    at = jax.vmap(lambda row: jnp.searchsorted(row, wanted))(places)
    return order[jnp.minimum(at, met.shape[1] - 1)], wanted <= places[:, -1:]


def opacities(splats, listed, rays):
    """α of splats [..., 16] on rays [..., 3] that broadcast, 0 where there is no hit."""
    a = [splats[..., i] for i in range(12)]
    x, y, z = rays[..., 0], rays[..., 1], rays[..., 2]
    r = [a[3 * i] * x + a[3 * i + 1] * y + a[3 * i + 2] * z for i in range(3)]
    p = a[9:12]
    across = ((p[1] * r[2] - p[2] * r[1]) ** 2 + (p[2] * r[0] - p[0] * r[2]) ** 2
              + (p[0] * r[1] - p[1] * r[0]) ** 2)
    alpha = splats[..., 12] * jnp.exp(-0.5 * across / (r[0] ** 2 + r[1] ** 2 + r[2] ** 2))
    hit = listed & (p[0] * r[0] + p[1] * r[1] + p[2] * r[2] < 0) & (alpha >= CUTOFF)
    return jnp.where(hit, alpha, 0)


def shown(color, left):
    u = color + left[..., None] * BACKGROUND
    lit = u > 0
    rgb = jnp.where(lit, jnp.where(lit, u, 1) ** GAMMA, 0)
    return jnp.concatenate([rgb, 1 - left[..., None]], -1)


def compose(table, ids, listed, rays):
    """One tile: [length] splats on [pixels, 3] rays."""
    s = table[ids]
    alpha = opacities(s, listed, rays[:, None])
    kept = jnp.log1p(-alpha)
    before = jnp.exp(jnp.cumsum(kept, axis=1) - kept)
    seen = before >= THRESHOLD
    weight = jnp.where(seen, before * alpha, 0)
    left = jnp.exp(jnp.sum(jnp.where(seen, kept, 0), 1))
    return shown(weight @ s[:, 13:16], left)


def compose_by_entries(table, ids, listed, rays):
    """All tiles: entry after entry of their lists [tiles, length], on [tiles, pixels, 3] rays."""
    @jax.checkpoint
    def step(carry, at):
        color, left = carry
        s = table[at[0]][:, None]
        alpha = opacities(s, at[1][:, None], rays)
        weight = jnp.where(left >= THRESHOLD, left * alpha, 0)
        return (color + weight[..., None] * s[..., 13:16], left - weight), None

    first = (jnp.zeros_like(rays), jnp.ones(rays.shape[:2], rays.dtype))
    (color, left), _ = lax.scan(step, first, (ids.T, listed.T))
    return shown(color, left)


def splat_loss(variant, feeds, settings):
    camera = Camera(settings["width"], settings["height"], settings["tile"])
    first = {name: jnp.asarray(feeds[name]) for name in
             ("positions", "scales", "rotations", "opacities", "sh")}
    longest = int(jnp.max(jnp.sum(meeting(first, camera)[0], 1)))
    length = -(-max(longest, 1) // 32) * 32

    def loss(p, batch):
        ids, listed = lists(lax.stop_gradient(p), camera, length)
        table = shapes(p)
        one = lambda tile: compose(table, *tile)
        inputs = (ids, listed, jnp.asarray(camera.rays))
        if variant == "tile_by_tile":
            tiles = lax.map(jax.checkpoint(one), inputs)
        elif variant == "all_tiles":
            tiles = jax.vmap(one)(inputs)
        else:
            tiles = compose_by_entries(table, *inputs)
        image = camera.image(tiles).reshape(-1)
        return jnp.mean(jnp.square(image - batch["target"]))

    return loss
