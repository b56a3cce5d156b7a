"""Document translation: text is translated, and every other byte is preserved."""
