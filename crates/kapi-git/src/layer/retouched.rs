//! Files that a layer holds as they lie below it, and that git may store in another way by now.
//!
//! In a worktree git adds a file anew that was only touched, by the rules of that moment: line
//! endings may be other ones. So does a layer.

use std::io::Read as _;
use std::path::Path;

use super::direct::Conversion;
use super::plan::Taken;
use super::survey::LayerSurvey;

/// The largest file that is read for it; a larger one git looks at.
const BYTES_MAX: u64 = 16 << 20;

/// Returns those of the files that may be stored in another way than the base has them.
pub(crate) fn found(survey: &LayerSurvey, same: &Taken, conversion: Conversion) -> Taken {
    let may_differ = |path: &Path| {
        let bytes = read(survey, path);
        conversion != Conversion::Nothing && !bytes.is_some_and(|bytes| conversion.keeps(&bytes))
    };
    let found = same.iter().filter(|(path, _)| may_differ(path));
    let found = found.map(|(path, base)| (path.clone(), base.clone()));
    found.collect()
}

fn read(survey: &LayerSurvey, path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = survey.upper.file(path).ok()?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= BYTES_MAX).then_some(bytes)
}
