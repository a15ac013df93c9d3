//! The command `qspin`, its manual pages, what shells complete, and the library that `qspin run` preloads into
//! programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::Origin;
use crate::library::{cargo, run, target};
use crate::tree::{Content, Tree};

/// Where the command looks for its library, relative to itself: whatever directory other libraries have.
const PRELOAD: &str = "lib/qspin/libqspin_preload.so";

/// Builds both, unless they are built already, and says where they belong.
pub(crate) fn built(origin: &Origin) -> Result<Tree, String> {
    let directory = match origin {
        Origin::Built(directory) => directory.clone(),
        Origin::Profile(profile) => {
            let target = target()?;
            let mut cargo = cargo("build", &target);
            cargo.args(["--package", "qspin-lab", "--package", "qspin-preload"]);
            run(cargo.args(["--profile", profile]))?;
            target.join(directory_of(profile))
        }
    };
    let file = |name: &str| {
        let path = directory.join(name);
        let bytes =
            fs::read(&path).map_err(|why| format!("cannot read {}: {why}", path.display()))?;
        Ok::<_, String>(Content::File(bytes, true))
    };
    let mut tree: Tree = vec![(PathBuf::from("bin/qspin"), file("qspin")?)];
    tree.extend(described(&directory.join("qspin"))?);
    // Elsewhere there is nothing to interpose.
    if cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        tree.push((PathBuf::from(PRELOAD), file("libqspin_preload.so")?));
    }
    Ok(tree)
}

/// The manual pages and completions, which the command writes itself.
fn described(qspin: &Path) -> Result<Tree, String> {
    let directory = target()?.join(format!("capi/qspin-install-manual-{}", std::process::id()));
    let cannot = |why: std::io::Error| format!("cannot read {}: {why}", directory.display());
    fs::create_dir_all(&directory).map_err(cannot)?;
    let tree = run(Command::new(qspin).arg("manual").arg(&directory)).and_then(|()| {
        let mut tree = Tree::new();
        for entry in fs::read_dir(&directory).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let place = match &*name {
                "qspin.bash" => PathBuf::from("share/bash-completion/completions/qspin"),
                "_qspin" => PathBuf::from("share/zsh/site-functions/_qspin"),
                "qspin.fish" => PathBuf::from("share/fish/vendor_completions.d/qspin.fish"),
                page => Path::new("share/man/man1").join(page),
            };
            tree.push((place, Content::File(fs::read(&path).map_err(cannot)?, false)));
        }
        tree.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(tree)
    });
    // Below cargo's own directory: one that cannot be removed is in no one's way there.
    let _ = fs::remove_dir_all(&directory);
    tree
}

/// The directory into which cargo builds with a profile.
fn directory_of(profile: &str) -> &Path {
    Path::new(match profile {
        "dev" | "test" => "debug",
        "bench" => "release",
        other => other,
    })
}
