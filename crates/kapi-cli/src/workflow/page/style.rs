//! How pages and pictures look: one sheet, made of the palette, in light, in dark, on paper.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use crate::workflow::page::palette::{Colour, PALETTE, hex};

/// The sheet of a page, apart from its colours.
const PAGE: &str = include_str!("page.css");
/// The sheet of pictures; `$name` is a colour of the palette.
const DRAWING: &str = include_str!("drawing.css");
/// Where a colour is named in a sheet.
const MARK: char = '$';

/// Returns the whole sheet of a page.
pub(super) fn page() -> String {
    let colours = |pick: fn(&Colour) -> u32| {
        let colours = PALETTE.iter();
        let colours = colours.map(|it| format!("--{}:{};", it.name, hex(pick(it))));
        colours.collect::<String>()
    };
    let light = colours(|it| it.light);
    let dark = colours(|it| it.dark);
    let drawing = DRAWING.replace(MARK, "--");
    let drawing = variables(&drawing);
    // On paper everything is as in light.
    format!(
        ":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n\
         {PAGE}{drawing}"
    )
}

/// Puts `var(…)` around the names of colours, which not every program that draws pictures knows.
fn variables(sheet: &str) -> String {
    let mut text = sheet.to_owned();
    for colour in &PALETTE {
        let name = format!("--{}", colour.name);
        text = text.replace(&format!("{name};"), &format!("var({name});"));
    }
    text
}

/// Returns the sheet of a picture in a file of its own.
pub(super) fn drawing_alone() -> String {
    let with = |pick: fn(&Colour) -> u32| {
        let mut text = DRAWING.to_owned();
        for colour in &PALETTE {
            let name = format!("{MARK}{};", colour.name);
            text = text.replace(&name, &format!("{};", hex(pick(colour))));
        }
        text
    };
    let (light, dark) = (with(|it| it.light), with(|it| it.dark));
    format!("{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n")
}

/// Returns what a page may do: show itself in this sheet, and nothing else.
pub(super) fn policy(sheet: &str) -> String {
    let hash = STANDARD.encode(digest(&SHA256, sheet.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

#[cfg(test)]
mod tests {
    use super::{drawing_alone, page};

    #[test]
    fn every_colour_is_one_of_the_palette() {
        for sheet in [page(), drawing_alone()] {
            assert!(!sheet.contains('$'), "{sheet}");
            assert!(!sheet.contains("</"), "{sheet}");
            assert!(!sheet.contains("url("), "{sheet}");
        }
        assert!(!drawing_alone().contains("var("));
        let page = page();
        let used = page.split("var(--").skip(1);
        for name in used.filter_map(|rest| rest.split_once(')')) {
            assert!(page.contains(&format!("--{}:#", name.0)), "{}", name.0);
        }
    }
}
