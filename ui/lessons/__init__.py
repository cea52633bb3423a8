"""The lesson: chapters as an ordered list of data, their words in assets/lessons/, their panels one module each."""
