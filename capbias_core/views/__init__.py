"""What finished results say, a module per subject: rows in; sentences, tables and charts out."""
