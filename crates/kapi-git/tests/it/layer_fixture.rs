//! A layer under a real overlay mount, made by an ordinary user's means: a user namespace.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use kapi_git::candidate::CandidatePlan;
use kapi_git::layer::commit::{LayerCandidate, LayerPlan};
use kapi_git::layer::error::LayerCommitError;
use kapi_git::layer::lower::LowerStack;
use kapi_git::layer::{Layer, Marks};
use kapi_git::own_commits::OwnCommit;
use kapi_git::repository::Repository;
use kapi_git::workspace::GitWorkspace;

use crate::fixture::{Fixture, run, turn};

pub(crate) struct LayerFixture {
    pub(crate) fixture: Fixture,
    pub(crate) repository: Repository,
    pub(crate) layer: Layer,
    pub(crate) workspace: GitWorkspace,
}

impl LayerFixture {
    pub(crate) fn new() -> Self {
        Self::on(Fixture::new())
    }

    pub(crate) fn on(fixture: Fixture) -> Self {
        let repository = fixture.open();
        let layer = open(&fixture);
        let mut plan = fixture.plan();
        plan.goal = kapi_git::id::RefPart::parse("002-layer").expect("goal");
        plan.branch = "feat/layer".to_owned();
        plan.path = fixture.root().join("kapi home/worktrees/002-layer");
        let workspace = repository.claim_layer(&layer, &plan).expect("claim");
        Self {
            fixture,
            repository,
            layer,
            workspace,
        }
    }

    pub(crate) fn lower(&self) -> PathBuf {
        self.fixture.repo()
    }

    /// Returns the person's checkout as what the layer lies over.
    pub(crate) fn stack(&self) -> LowerStack {
        LowerStack::project(&self.lower())
    }

    /// Runs a script where an agent would: over the person's checkout.
    #[track_caller]
    pub(crate) fn inside(&self, script: &str) -> String {
        mounted(&self.layer, &self.stack(), script)
    }

    pub(crate) fn try_commit(&self) -> Result<LayerCandidate, LayerCommitError> {
        self.commit_as(&turn(1))
    }

    pub(crate) fn commit_as(
        &self,
        candidate: &CandidatePlan,
    ) -> Result<LayerCandidate, LayerCommitError> {
        self.commit_after(&[], candidate)
    }

    pub(crate) fn commit_after(
        &self,
        own: &[OwnCommit],
        candidate: &CandidatePlan,
    ) -> Result<LayerCandidate, LayerCommitError> {
        self.repository.commit_layer(&LayerPlan {
            layer: &self.layer,
            lower: &self.stack(),
            workspace: &self.workspace,
            candidate,
            own,
        })
    }

    #[track_caller]
    pub(crate) fn commit(&self) -> LayerCandidate {
        self.try_commit().expect("candidate")
    }
}

pub(crate) fn open(fixture: &Fixture) -> Layer {
    let dir = fixture.root().join("kapi home/sandboxes/002-layer");
    Layer::open(&dir, Marks::User, "test").expect("layer")
}

/// Runs a script in an overlay over `lower` with this layer, and returns its output.
#[track_caller]
pub(crate) fn mounted(layer: &Layer, lower: &LowerStack, script: &str) -> String {
    let work = layer.fresh_work().expect("work");
    let point = work.with_file_name("mounted");
    std::fs::create_dir_all(&point).expect("mount point");
    let beneath = lower
        .beneath()
        .iter()
        .map(|dir| format!(":{}", dir.display()));
    let lower = format!("{}{}", lower.top().display(), beneath.collect::<String>());
    let upper = layer.upper();
    let options = format!(
        "userxattr,volatile,lowerdir={lower},upperdir={},workdir={}",
        upper.display(),
        work.display()
    );
    let mount =
        "mount -t overlay overlay -o \"$1\" \"$2\" && cd \"$2\" && exec /bin/sh -euc \"$3\"";
    let args = [
        "-rm".as_ref(),
        "/bin/sh".as_ref(),
        "-euc".as_ref(),
        OsStr::new(mount),
        "sh".as_ref(),
        OsStr::new(&options),
        point.as_os_str(),
        OsStr::from_bytes(script.as_bytes()),
    ];
    let (code, output) = run(Path::new("/usr/bin/unshare"), Path::new("/"), &args);
    let text = String::from_utf8_lossy(&output).trim_end().to_owned();
    assert_eq!(code, 0, "{script}: {text}");
    text
}
