//! The list from which another container can be chosen.

use super::Then;
use super::picture::Picture;

pub struct Chooser {
    pub containers: Vec<(String, String)>,
    pub marked: usize,
}

impl Chooser {
    pub fn new(picture: &Picture) -> Chooser {
        let shown = (&picture.database, &picture.container);
        let marked =
            picture.containers.iter().position(|(database, container)| (database, container) == shown);
        Chooser { containers: picture.containers.clone(), marked: marked.unwrap_or(0) }
    }

    pub fn up(&mut self) -> Then {
        self.marked = self.marked.saturating_sub(1);
        Then::Stay
    }

    pub fn down(&mut self) -> Then {
        self.marked = (self.marked + 1).min(self.containers.len().saturating_sub(1));
        Then::Stay
    }

    pub fn chosen(&self) -> Option<(String, String)> {
        self.containers.get(self.marked).cloned()
    }
}
