"""Result rows in, words on the screen out: sentences, figures, tables, coloured words. Nothing is computed here."""
