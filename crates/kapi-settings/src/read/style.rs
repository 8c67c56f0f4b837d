//! How the variants of an enumeration are written in a file.

/// How the variants of an enumeration are written.
#[derive(Clone, Copy)]
pub(super) enum Style {
    /// A word, or a table with one key.
    Plain,
    /// A table with a key that names the variant.
    Tagged {
        tag: &'static str,
        otherwise: Option<&'static str>,
    },
    /// As [`Style::Plain`], or a text that stands for one variant.
    Text(&'static str),
}

impl Style {
    pub(super) fn of(name: &'static str) -> Self {
        if let Some(variant) = name.strip_prefix("text is ") {
            return Self::Text(variant);
        }
        let Some(tag) = name.strip_prefix("by ") else {
            return Self::Plain;
        };
        match tag.split_once(" or ") {
            Some((tag, word)) => Self::Tagged {
                tag,
                otherwise: Some(word),
            },
            None => Self::Tagged {
                tag,
                otherwise: None,
            },
        }
    }
}
