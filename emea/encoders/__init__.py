"""Neural encoders and the LightningModule that trains them."""
