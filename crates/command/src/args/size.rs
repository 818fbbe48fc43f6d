//! Sizes with their units, as arguments give them.

/// Reads a size with its unit: K, M, G and T are KiB, MiB, GiB and TiB; without one it is bytes.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: write 500M or 16G");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text.get(digits.len()..).unwrap_or_default() {
        "" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        "T" | "t" | "TiB" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("16G"), Ok(16 << 30));
        assert_eq!(size("2MiB"), Ok(2 << 20));
        assert_eq!(size("7k"), Ok(7 << 10));
        for wrong in ["", "x", "M", "1.5G", "1Y", "64Q", "1iB", "-1", "99999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
