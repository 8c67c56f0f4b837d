//! The colours of pages and pictures, in light and in dark.
//!
//! Told apart by those who see fewer of them, too: what they mean is also said by a shape or a sign.

/// A colour.
pub(super) struct Colour {
    /// Its name in style sheets.
    pub(super) name: &'static str,
    /// On light ground.
    pub(super) light: u32,
    /// On dark ground.
    pub(super) dark: u32,
}

const fn colour(name: &'static str, light: u32, dark: u32) -> Colour {
    Colour { name, light, dark }
}

/// Every colour there is.
pub(super) const PALETTE: [Colour; 13] = [
    colour("ground", 0xffffff, 0x0f141a),
    colour("panel", 0xf4f6f9, 0x182028),
    colour("text", 0x1a2330, 0xe7ecf2),
    colour("muted", 0x556171, 0xa5b0be),
    colour("line", 0xd6dde5, 0x2f3a46),
    colour("focus", 0x0b63b5, 0x7cc0ff),
    colour("keep", 0x0b63b5, 0x6db6ff),
    colour("discard", 0x5d6875, 0x9aa6b4),
    colour("crash", 0xb03a06, 0xff9466),
    colour("checks", 0x8a3a8f, 0xe091e6),
    colour("added", 0x17663a, 0x72d69b),
    colour("removed", 0xa52a24, 0xff9d95),
    colour("hunk", 0x5b4bb0, 0xb3a8ff),
];

/// Returns a colour as style sheets write it.
pub(super) fn hex(colour: u32) -> String {
    format!("#{colour:06x}")
}

#[cfg(test)]
mod tests {
    use super::PALETTE;

    /// Returns how light a colour is, by the formula of WCAG 2.
    fn luminance(colour: u32) -> f64 {
        let [_, red, green, blue] = colour.to_be_bytes().map(|byte| {
            let share = f64::from(byte) / 255.0;
            if share <= 0.04045 {
                share / 12.92
            } else {
                ((share + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn contrast(a: u32, b: u32) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn letters_and_marks_stand_out_from_every_ground() {
        assert!((contrast(0x000000, 0xffffff) - 21.0).abs() < 0.01);
        let is_ground = |name: &str| name == "ground" || name == "panel";
        for colour in &PALETTE {
            let least = match colour.name {
                // Rules and grids mean nothing.
                "ground" | "panel" | "line" => continue,
                "focus" => 3.0,
                _ => 4.5,
            };
            for ground in PALETTE.iter().filter(|it| is_ground(it.name)) {
                let name = colour.name;
                let light = contrast(colour.light, ground.light);
                assert!(light >= least, "{name} in light: {light:.2}");
                let dark = contrast(colour.dark, ground.dark);
                assert!(dark >= least, "{name} in dark: {dark:.2}");
            }
        }
    }

    #[test]
    fn what_is_told_apart_by_colour_is_told_apart_by_lightness_or_hue() {
        // Blue, grey, vermilion and purple: the pairs that red-green blindness confuses are missing.
        let of = |name: &str| PALETTE.iter().find(|it| it.name == name).unwrap();
        for (a, b) in [("keep", "crash"), ("keep", "checks"), ("keep", "discard")] {
            let (a, b) = (of(a), of(b));
            let blue = |colour: u32| i64::from(colour & 0xff) - i64::from(colour >> 16);
            let apart = (blue(a.light) - blue(b.light)).abs();
            assert!(apart > 80, "{} and {}: {apart}", a.name, b.name);
        }
    }
}
