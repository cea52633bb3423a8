"""The pages of the app, one function each."""
