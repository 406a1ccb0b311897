"""Device, threads, memory blocks, signals and the console: what a process needs to run."""
