"""Compact self-avoiding walks in a box of lattice sites: symmetries, enumeration, contacts.

Sites are numbered in C order of their coordinates.
"""

from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from rbal._support.gauss import jit

STEPS = 1_000_000  # of the search in one compiled call, some tenths of a second: after it Ctrl-C is heard


def coordinates(shape):
    """Return the integer coordinates (sites, 3) of a box of this shape."""
    return np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)


def symmetries(shape):
    """Return the permutations (order, sites) that map the box onto itself, reflections included; identity first."""
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
    """Return the neighbours (sites, 6) of each site in increasing order, padded with -1 in front."""
    xyz = coordinates(shape)
    table = np.full((len(xyz), 6), -1)
    for column, step in enumerate(np.vstack([-np.eye(3, dtype=int), np.eye(3, dtype=int)])):
        to = xyz + step
        inside = ((to >= 0) & (to < shape)).all(axis=1)
        table[inside, column] = np.ravel_multi_index(tuple(to[inside].T), shape)
    return np.sort(table, axis=1)


@jit
def is_least(site, group, alive):
    """Tell whether no symmetry that is alive, of a group (order, sites), maps the site to a smaller one."""
    least = site
    for g in range(group.shape[0]):
        if alive[g]:
            least = min(least, group[g, site])
    return least == site


@jit
def stabilise(site, group, alive, still):
    """Mark in ``still`` (order,) the symmetries alive that also fix the site; tell whether any but the identity do."""
    left = 0
    for g in range(group.shape[0]):
        still[g] = alive[g] and group[g, site] == site
        left += still[g]
    return left > 1


@jit
def strands(head, near, visited):
    """Tell whether a free site away from the head has no free neighbour, or two have only one: no walk is left then.

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
    """Copy walks (n, sites) to an array of twice the length."""
    longer = np.empty((2 * walks.shape[0], walks.shape[1]), walks.dtype)
    longer[: walks.shape[0]] = walks
    return longer


class Branch(NamedTuple):
    """A walk as far as the search has come, and what it knows of each step t; it changes in place."""

    walk: np.ndarray  # (sites,) sites taken
    tried: np.ndarray  # (sites + 1,) neighbours of site t - 1 that were tried
    visited: np.ndarray  # (sites,) whether a site is taken
    alive: np.ndarray  # (sites + 1, order) symmetries that fix the first t sites
    breaks: np.ndarray  # (sites + 1,) whether these are more than the identity


def hamiltonian_walks(near, group):
    """Return all walks (n, sites) that visit every site once, the least in lexicographic order of each symmetry class.

    A walk is the least of its class when each of its sites is the least among the images under those symmetries that
    fix all sites before: only such steps are taken, so that nothing is generated twice.
    """
    n_sites = near.shape[0]
    found, n_found = np.empty((1024, n_sites), np.int8), 0
    visited, breaks = np.zeros(n_sites, np.bool_), np.ones(n_sites + 1, np.bool_)
    alive = np.ones((n_sites + 1, group.shape[0]), np.bool_)
    walk, tried = np.zeros(n_sites, np.int8), np.zeros(n_sites + 1, np.int8)
    branch = Branch(walk, tried, visited, alive, breaks)
    for start in range(n_sites):
        if not is_least(start, group, alive[0]):
            continue
        walk[0], visited[start], tried[1], t = start, True, 0, 1
        breaks[1] = stabilise(start, group, alive[0], alive[1])
        while t > 0:
            t, found, n_found = search(near, group, branch, t, found, n_found)
    return found[:n_found].copy()


@jit
def search(near, group, branch, t, found, n_found):
    """Make steps, forward and back, of the search for walks that begin as the t sites of the branch.

    Returns t, the walks found (n, sites), of which n_found count, and n_found.
    """
    walk, tried, visited, alive, breaks = branch
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
    """Return the contacts (n, contacts, 2) of walks: pairs i < j on neighbouring sites that are not bonded, sorted."""
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
