"""Translation: training and inference."""
