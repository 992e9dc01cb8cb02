"""What is decided: tasks, guidance, questions, approvals; the human files. Free of screens."""
