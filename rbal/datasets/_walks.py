"""Compact self-avoiding walks in a box of lattice sites: symmetries, enumeration, contacts. Nothing public.

Sites are numbered in C order of their coordinates.
"""

from itertools import permutations, product

import numpy as np

from .._support.gauss import jit

STEPS = 1_000_000  # of the search in one compiled call, some tenths of a second: after it Ctrl-C is heard


def coordinates(shape):
    """(sites, 3) integer coordinates."""
    return np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)


def symmetries(shape):
    """(order, sites) permutations of the sites that map the box onto itself, reflections included; identity first."""
    xyz, size = coordinates(shape), np.array(shape)
    maps = []
    for axes in permutations(range(3)):
        if any(shape[a] != shape[b] for a, b in zip(axes, range(3), strict=True)):
            continue
        for flip in product((False, True), repeat=3):
            image = np.where(flip, size - 1 - xyz[:, axes], xyz[:, axes])
            maps.append(np.ravel_multi_index(tuple(image.T), shape))
    # a box that is one site thick is its own mirror image: drop what is there twice
    _, first = np.unique(np.array(maps), axis=0, return_index=True)
    return np.array(maps)[np.sort(first)]


def neighbours(shape):
    """(sites, 6) neighbouring sites in increasing order, padded with -1 in front."""
    xyz = coordinates(shape)
    table = np.full((len(xyz), 6), -1)
    for column, step in enumerate(np.vstack([-np.eye(3, dtype=int), np.eye(3, dtype=int)])):
        to = xyz + step
        inside = ((to >= 0) & (to < shape)).all(axis=1)
        table[inside, column] = np.ravel_multi_index(tuple(to[inside].T), shape)
    return np.sort(table, axis=1)


@jit
def is_least(site, group, alive):
    """True when no symmetry that is alive maps the site to a smaller one."""
    least = site
    for g in range(group.shape[0]):
        if alive[g]:
            least = min(least, group[g, site])
    return least == site


@jit
def stabilise(site, group, alive, still):
    """Mark in ``still`` the symmetries alive that also fix the site; say whether more than the identity is left."""
    left = 0
    for g in range(group.shape[0]):
        still[g] = alive[g] and group[g, site] == site
        left += still[g]
    return left > 1


@jit
def strands(head, near, visited):
    """True when a free site away from the head has no free neighbour, or two of them have only one: no walk is left.

    A free site is entered and left through free neighbours, unless the walk goes there at once or ends there.
    """
    ends = 0
    for site in range(near.shape[0]):
        if visited[site]:
            continue
        free, at_head = 0, False
        for k in range(6):
            to = near[site, k]
            if to >= 0:
                free += not visited[to]
                at_head |= to == head
        if not at_head and free < 2:
            ends += 1
            if free == 0 or ends > 1:
                return True
    return False


@jit
def grow(walks):
    longer = np.empty((2 * walks.shape[0], walks.shape[1]), walks.dtype)
    longer[: walks.shape[0]] = walks
    return longer


def hamiltonian_walks(near, group):
    """(n, sites) walks that visit every site once: of each class of symmetric walks the least in lexicographic order.

    A walk is the least of its class when each of its sites is the least among the images under those symmetries that
    fix all sites before: only such steps are taken, so that nothing is generated twice.
    """
    n_sites = near.shape[0]
    found, n_found = np.empty((1024, n_sites), np.int8), 0
    visited = np.zeros(n_sites, np.bool_)
    alive = np.ones((n_sites + 1, group.shape[0]), np.bool_)  # row t: symmetries that fix the first t sites
    breaks = np.ones(n_sites + 1, np.bool_)  # whether row t has more than the identity
    walk, tried = np.zeros(n_sites, np.int8), np.zeros(n_sites + 1, np.int8)
    for start in range(n_sites):
        if not is_least(start, group, alive[0]):
            continue
        walk[0], visited[start], tried[1], t = start, True, 0, 1
        breaks[1] = stabilise(start, group, alive[0], alive[1])
        while t > 0:
            t, found, n_found = search(near, group, walk, tried, visited, alive, breaks, t, found, n_found)
    return found[:n_found].copy()


@jit
def search(near, group, walk, tried, visited, alive, breaks, t, found, n_found):
    """Some steps, forward and back, of the search for walks that begin as this one; t sites of it are taken."""
    n_sites = near.shape[0]
    for _ in range(STEPS):
        if t == 0:
            break
        if t == n_sites:
            if n_found == found.shape[0]:
                found = grow(found)
            found[n_found] = walk
            n_found += 1
        if t == n_sites or tried[t] == 6:  # step back
            t -= 1
            visited[walk[t]] = False
            continue
        site = near[walk[t - 1], tried[t]]
        tried[t] += 1
        if site < 0 or visited[site] or (breaks[t] and not is_least(site, group, alive[t])):
            continue
        visited[site] = True
        if strands(site, near, visited):
            visited[site] = False
            continue
        walk[t] = site
        breaks[t + 1] = breaks[t] and stabilise(site, group, alive[t], alive[t + 1])
        t += 1
        tried[t] = 0
    return t, found, n_found


def contact_pairs(walks):
    """(n, contacts, 2) pairs i < j of monomers on neighbouring sites that are no neighbours along the chain, sorted."""
    n_sites = walks.shape[1]
    shape = tuple(walks.reshape(-1, 3).max(axis=0) + 1)
    site = np.ravel_multi_index(tuple(np.moveaxis(walks, 2, 0)), shape)
    monomer = np.argsort(site, axis=1)
    near = neighbours(shape)
    a, b = np.nonzero(near >= 0)
    edges = np.stack([a, near[a, b]], axis=1)
    ends = monomer[:, edges[edges[:, 0] < edges[:, 1]]]
    i, j = ends.min(axis=2), ends.max(axis=2)
    bonds = j == i + 1
    key = np.sort(np.where(bonds, n_sites**2, i * n_sites + j), axis=1)[:, : len(ends[0]) - (n_sites - 1)]
    return np.stack([key // n_sites, key % n_sites], axis=2).astype(np.int8)
