"""The page: a Streamlit script and the plain functions it calls. What moves is drawn in the browser, not here."""
