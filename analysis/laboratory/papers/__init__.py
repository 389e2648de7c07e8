"""What the papers print beside what comes out here: the pages of docs/papers."""
