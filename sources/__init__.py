"""Things that make a trace grow. Each file is one source; app.py names them to the server."""
