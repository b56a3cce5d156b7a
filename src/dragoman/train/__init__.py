"""Learning: objective, schedule, optimizer, step, loop, checkpoints, reports."""
