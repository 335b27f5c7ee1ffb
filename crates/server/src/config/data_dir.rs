//! Where data lies when nobody says it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder of earlier versions; where there is one it is used.
const BESIDE_US: &str = "./orrery-data";

/// The folder for this user, or the one of earlier versions where the working directory has it.
pub fn by_default() -> PathBuf {
    choose(Path::new(BESIDE_US).is_dir(), std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"))
}

/// A user without a home, as in small containers, gets a folder beside where the server was started.
fn choose(is_beside_us: bool, data_home: Option<OsString>, home: Option<OsString>) -> PathBuf {
    if is_beside_us {
        return PathBuf::from(BESIDE_US);
    }
    // The standard has relative paths ignored.
    let absolute = |text: Option<OsString>| text.map(PathBuf::from).filter(|path| path.is_absolute());
    let of_home = absolute(home).filter(|home| home.parent().is_some()).map(|home| home.join(".local/share"));
    let folder = absolute(data_home).or(of_home).map(|folder| folder.join("orrery"));
    folder.unwrap_or_else(|| PathBuf::from(BESIDE_US))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_follows_the_user_and_keeps_what_is_there() {
        let chosen = |is_beside_us, data_home: Option<&str>, home: Option<&str>| {
            choose(is_beside_us, data_home.map(Into::into), home.map(Into::into)).display().to_string()
        };
        assert_eq!(chosen(false, Some("/x"), Some("/users/ada")), "/x/orrery");
        assert_eq!(chosen(false, None, Some("/users/ada")), "/users/ada/.local/share/orrery");
        assert_eq!(chosen(false, Some(""), Some("/users/ada")), "/users/ada/.local/share/orrery");
        assert_eq!(chosen(false, Some("rel"), Some("/users/ada")), "/users/ada/.local/share/orrery");
        assert_eq!(chosen(true, Some("/x"), Some("/users/ada")), "./orrery-data");
        for home in [None, Some(""), Some("/"), Some("rel")] {
            assert_eq!(chosen(false, None, home), "./orrery-data", "{home:?}");
        }
    }
}
