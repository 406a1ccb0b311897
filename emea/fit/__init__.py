"""Training: the LightningModule, its stages, early stopping, self-training and saved state."""
