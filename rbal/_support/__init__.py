"""What every room uses: checks of arguments, compiled helpers, threads, frames, files."""
