"""A simulation of bodies that attract each other: a script for NumPy that knows nothing of Supremum."""

import numpy as np


def data():
    """Positions and velocities of bodies, and their masses, which are known less exactly."""
    angle = np.arange(6) * 1.1
    positions = np.stack([np.cos(angle), np.sin(angle), 0.1 * angle], axis=1)
    velocities = np.stack([-np.sin(angle), np.cos(angle), 0.0 * angle], axis=1)
    return positions, velocities, np.linspace(0.1, 0.6, 6).astype("float32")


def run(positions, velocities, masses, steps=20, step=0.01):
    """The state and the energy after some steps."""
    positions, velocities = np.copy(positions), np.copy(velocities)
    energies, kinetics = [], []
    for _ in range(steps):
        offsets = positions[:, None, :] - positions[None, :, :]
        distances = np.sqrt(np.sum(offsets * offsets, axis=-1) + 0.01)
        forces = np.einsum("ijk,j->ik", offsets / distances[:, :, None] ** 3, masses)
        velocities -= step * forces
        positions += step * velocities
        kinetic = 0.5 * np.dot(masses, np.linalg.norm(velocities, axis=1) ** 2)
        potential = np.einsum("i,ij,j->", masses, 1.0 / distances, masses)
        kinetics.append(kinetic)
        energies.append(kinetic - 0.5 * potential)
    centre = np.tensordot(masses, positions, axes=1)
    centre /= np.sum(masses)
    return {
        "positions": positions,
        "velocities": velocities,
        "energies": np.stack(energies),
        "centre": centre,
        "power": np.gradient(np.stack(kinetics), step),
        "halfway": np.interp(np.mean(positions[:, 0]), np.sort(positions[:, 0]), np.sort(positions[:, 1])),
    }
