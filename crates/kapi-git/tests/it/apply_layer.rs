//! From a real overlay mount into the project below it, as `kapi sandbox merge` goes.

use std::collections::BTreeSet;
use std::fs;

use kapi_git::apply::offers::{LayerOffers, beginning, layer_offers, mark_beginning};
use kapi_git::apply::{ApplyPlan, Moment, OnConflict, Preview, apply};
use kapi_git::layer::lower::LowerStack;
use kapi_git::layer::walk::walk;
use kapi_git::layer::{Layer, Marks};

use crate::fixture::{Fixture, everything, git, read, write};
use crate::layer_fixture::{mounted, open};

struct Scene {
    fixture: Fixture,
    layer: Layer,
    began: Moment,
}

impl Scene {
    fn new() -> Self {
        let fixture = Fixture::new();
        write(&fixture.repo().join("old/a"), "a\n");
        write(&fixture.repo().join("old/sub/b"), "b\n");
        write(&fixture.repo().join("text"), "1\n2\n3\n4\n5\n6\n7\n8\n");
        fixture.commit("more");
        let layer = open(&fixture);
        assert_eq!(layer.marks(), Marks::User);
        let mark = fixture.root().join("began");
        // Until the clock of change times has moved on from what was just written.
        let first = mark_beginning(&mark).expect("mark");
        let mut began = first;
        while began <= first {
            began = mark_beginning(&mark).expect("mark");
        }
        assert_eq!(beginning(&mark), Some(began));
        Self {
            fixture,
            layer,
            began,
        }
    }

    fn merge(&self) -> Preview {
        let repository = self.fixture.open();
        let base = self.fixture.base();
        let (upper, project) = (self.layer.upper(), self.fixture.repo());
        let from = LayerOffers {
            upper: &upper,
            project: &project,
            began: self.began,
            base: Some(&base),
        };
        let found = walk(&self.layer, &LowerStack::project(&project)).expect("walk");
        let offers = layer_offers(&from, &found).expect("offers");
        let work = self.fixture.root().join("work");
        let applied = apply(&ApplyPlan {
            git: &git(),
            repository: Some(&repository),
            project: &project,
            work: &work,
            offers: &offers,
            select: &[],
            links_out: &BTreeSet::new(),
            on_conflict: OnConflict::Skip,
        });
        applied.expect("apply").preview
    }
}

#[test]
fn the_project_becomes_what_the_sandbox_showed() {
    let scene = Scene::new();
    let script = "echo two > src/main.txt; rm README; mkdir -p new/deep; echo n > new/deep/f
        ln -s src/main.txt alias; chmod +x text; mv old moved; mkdir old; echo z > old/z
        rm -r tests; echo file > tests; rm .gitignore; mkdir .gitignore; echo i > .gitignore/i";
    mounted(
        &scene.layer,
        &LowerStack::project(&scene.fixture.repo()),
        script,
    );
    // What the sandbox showed, by doing the same to a copy.
    let copy = scene.fixture.root().join("copy");
    crate::fixture::shell(
        scene.fixture.root(),
        &format!("cp -a '{}' copy", scene.fixture.repo().display()),
    );
    crate::fixture::shell(&copy, script);
    let preview = scene.merge();
    assert_eq!(preview.n_obstacles(), 0, "{preview:?}");
    let shown = |dir: &std::path::Path| {
        let mut found = everything(dir);
        found.retain(|path, _| !path.starts_with(".git"));
        found
    };
    assert_eq!(shown(&scene.fixture.repo()), shown(&copy));
    let mode = crate::fixture::shell(&scene.fixture.repo(), "stat -c %a text");
    assert_eq!(mode, "755");
    // Once more there is nothing left to do.
    let again = scene.merge();
    let done = again.verdicts.iter();
    let done = done.filter(|(_, verdict)| *verdict != kapi_git::apply::PathVerdict::Same);
    assert_eq!(done.count(), 0, "{again:?}");
}

#[test]
fn what_the_person_did_meanwhile_is_merged_or_left() {
    let scene = Scene::new();
    let repo = scene.fixture.repo();
    mounted(
        &scene.layer,
        &LowerStack::project(&repo),
        "sed -i 's/^8$/agent/' text; echo agent > README; rm -r old; echo agent > both",
    );
    write(&repo.join("text"), "person\n2\n3\n4\n5\n6\n7\n8\n");
    write(&repo.join("README"), "person\n");
    write(&repo.join("old/mine"), "person\n");
    write(&repo.join("both"), "person\n");
    let preview = scene.merge();
    let verdicts: Vec<String> = preview
        .verdicts
        .iter()
        .map(|(path, verdict)| format!("{} {verdict:?}", path.display()))
        .collect();
    assert_eq!(
        verdicts,
        [
            "README Conflict(SamePlaces { n_locations: 1 })",
            "both Conflict(ChangedHere)",
            "old Conflict(NotEmpty)",
            "text Merge",
        ]
    );
    assert_eq!(
        read(&repo.join("text")),
        "person\n2\n3\n4\n5\n6\n7\nagent\n"
    );
    assert_eq!(read(&repo.join("README")), "person\n");
    assert_eq!(read(&repo.join("both")), "person\n");
    assert!(fs::exists(repo.join("old/sub/b")).expect("look"));
}
