"""Language-model training and generation."""
