"""From a snapshot to the rows of each list pane: what is shown, in which order, in which words. No widget, no clock."""
