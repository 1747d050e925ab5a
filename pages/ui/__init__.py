"""What the pages share. Only this folder, app.py and the pages know streamlit."""
