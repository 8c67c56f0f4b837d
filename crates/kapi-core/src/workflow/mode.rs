//! A durable mode by its name: of its directories, its command and its links.
//!
//! Knows no mode's table and no mode's types; the names come from the list in
//! [`crate::workflow::modes`].

use std::fmt;

use serde::{Deserialize, Serialize};

/// Makes of the list the names.
macro_rules! names {
    (
        there are { $(
            $(#[cfg($($cfg:tt)*)])?
            $mode:ident $name:literal, $about:literal, as $tag:ident $word:literal in $folder:ident {
                $($part:tt)*
            }
        )+ }
        there will be { $($later:ident $later_name:literal, $later_about:literal;)* }
    ) => {
        /// A durable mode.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Mode {
            $($(#[cfg($($cfg)*)])? #[doc = $about] #[serde(rename = $name)] $mode,)+
            $(#[doc = $later_about] #[serde(rename = $later_name)] $later,)*
        }

        impl Mode {
            /// Every mode there is, those included that there are only by name yet.
            pub const ALL: [Self; [
                $($(#[cfg($($cfg)*)])? $name,)+ $($later_name,)*
            ].len()] = [
                $($(#[cfg($($cfg)*)])? Self::$mode,)+ $(Self::$later,)*
            ];

            /// Returns the name, which is also the name of its directory and its command.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$mode => $name,)+
                    $(Self::$later => $later_name,)*
                }
            }
        }
    };
}

every_mode!(names);

impl Mode {
    /// The mode that others take their context from.
    pub const CONTEXT: Self = Self::DeepInterview;
    /// The mode that takes the work of others over.
    pub const INTEGRATOR: Self = Self::Integrate;

    /// Reads a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
