//! A difference of simulated hosts, such as `npf:cost=+3%,model=1,day=3`.

use std::str::FromStr;

/// A simulated difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Exits of this reason.
    pub reason: String,
    /// Factor of their cost.
    pub cost: f64,
    /// Factor of their number.
    pub count: f64,
    /// Only on hosts of this model.
    pub model: Option<u32>,
    /// Only on the host with this index, counted from 0.
    pub host: Option<u32>,
    /// From this day on, counted from 0.
    pub from_day: u32,
}

impl FromStr for Effect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid effect {text}: write it as REASON:cost=+3%,model=1,day=3");
        let (reason, settings) = text.split_once(':').ok_or_else(wrong)?;
        let reason = reason.to_owned();
        let mut effect =
            Self { reason, cost: 1.0, count: 1.0, model: None, host: None, from_day: 0 };
        for setting in settings.split(',') {
            let (name, value) = setting.split_once('=').ok_or_else(wrong)?;
            match name {
                "cost" => effect.cost = factor(value).ok_or_else(wrong)?,
                "count" => effect.count = factor(value).ok_or_else(wrong)?,
                "model" => effect.model = Some(value.parse().map_err(|_| wrong())?),
                "host" => effect.host = Some(value.parse().map_err(|_| wrong())?),
                "day" => effect.from_day = value.parse().map_err(|_| wrong())?,
                _ => return Err(wrong()),
            }
        }
        Ok(effect)
    }
}

/// Parses `+3%` as 1.03.
fn factor(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%')?.parse().ok()?;
    (percent > -100.0 && percent <= 10_000.0).then_some(1.0 + percent / 100.0)
}

impl Effect {
    /// Whether it applies to a reason, on a host of this model and index, on this day.
    pub(super) fn is_on(&self, reason: &str, (model, host): (u32, u32), day: u32) -> bool {
        self.reason.eq_ignore_ascii_case(reason)
            && self.model.is_none_or(|only_model| only_model == model)
            && self.host.is_none_or(|only_host| only_host == host)
            && day >= self.from_day
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_read_or_refused() {
        let effect: Effect = "npf:cost=+3%,model=1,day=3".parse().unwrap();
        assert!((effect.cost - 1.03).abs() < 1e-12 && (effect.count - 1.0).abs() < 1e-12);
        assert!(effect.is_on("npf", (1, 7), 3) && effect.is_on("NPF", (1, 8), 9));
        for (reason, model, day) in [("io", 1, 3), ("npf", 0, 3), ("npf", 1, 2)] {
            assert!(!effect.is_on(reason, (model, 7), day));
        }
        let effect: Effect = "npf:count=-3%,host=7".parse().unwrap();
        assert!(effect.is_on("npf", (1, 7), 0) && !effect.is_on("npf", (1, 5), 0));
        for wrong in
            ["npf", "npf:", "npf:cost", "npf:cost=3", "npf:cost=-100%", "npf:x=1", "npf:day=x"]
        {
            assert!(wrong.parse::<Effect>().is_err(), "{wrong}");
        }
    }
}
