"""Sources of graph pairs: readers of data sets and own files, downloads, synthetic pairs."""
