"""What the figures have in common: style, looks, labels, lines, scales, notes and checks. No figure is drawn here."""
