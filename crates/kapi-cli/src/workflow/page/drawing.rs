//! Pictures: drawn once, shown within a page or alone in a file.
//!
//! A picture has its meaning in words, for whoever does not see it. What it shows is its mode's affair.

use maud::{Markup, PreEscaped, html};

use crate::workflow::page::style;
use crate::workflow::page::text::finished;

/// The size of a picture, in its own units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Across.
    pub(crate) width: f64,
    /// Down.
    pub(crate) height: f64,
}

impl Size {
    /// For a page and a README.
    pub(crate) const WIDE: Self = Self {
        width: 760.0,
        height: 380.0,
    };
    /// For a phone.
    pub(crate) const NARROW: Self = Self {
        width: 320.0,
        height: 360.0,
    };
    /// For one of several beside each other.
    pub(crate) const SMALL: Self = Self {
        width: 320.0,
        height: 180.0,
    };
}

/// A picture.
pub(crate) struct Drawing {
    /// Its size.
    pub(crate) size: Size,
    /// What it shows, in a few words.
    pub(crate) title: String,
    /// What can be seen in it, in sentences.
    pub(crate) description: String,
    /// Its shapes.
    pub(crate) body: Markup,
}

/// A picture of a page, with its forms for the widths of screens.
pub(crate) struct Figure {
    /// Its anchor.
    pub(crate) id: String,
    /// What stands below it.
    pub(crate) caption: String,
    /// For wide screens, and alone.
    pub(crate) wide: Drawing,
    /// For narrow screens.
    pub(crate) narrow: Drawing,
}

impl Drawing {
    /// Returns it as a part of a page.
    pub(crate) fn inline(&self, id: &str) -> Markup {
        let Size { width, height } = self.size;
        html! {
            svg.drawing viewBox={ "0 0 " (width) " " (height) } role="img"
                aria-labelledby={ (id) "-title " (id) "-text" } {
                title id={ (id) "-title" } { (self.title) }
                desc id={ (id) "-text" } { (self.description) }
                (self.body)
            }
        }
    }

    /// Returns it as a file: on a ground of its own, so that it can be read on any page.
    pub(crate) fn alone(&self) -> String {
        let Size { width, height } = self.size;
        let svg = html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) }
                width=(width) height=(height) role="img" aria-labelledby="title text" {
                title id="title" { (self.title) }
                desc id="text" { (self.description) }
                style { (PreEscaped(style::drawing_alone())) }
                rect.ground x="0.5" y="0.5" width=(width - 1.0) height=(height - 1.0) rx="6" {}
                (self.body)
            }
        };
        format!("{}\n", finished(&svg.into_string()))
    }
}

impl Figure {
    /// Returns it as a part of a page.
    pub(super) fn inline(&self) -> Markup {
        html! {
            figure id=(self.id) {
                div.wide { (self.wide.inline(&format!("{}-wide", self.id))) }
                div.narrow { (self.narrow.inline(&format!("{}-narrow", self.id))) }
                figcaption { (self.caption) }
            }
        }
    }
}
