"""From beliefs to an alignment: decoding, thresholds and export formats."""
