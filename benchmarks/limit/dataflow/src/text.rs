//! Values as the answers show them.

use crate::rows::Diff;

/// `value` in units of a power of ten: 1234 with two digits is 12.34.
pub fn decimal(value: Diff, digits: u32) -> String {
    let (sign, unit) = (if value < 0 { "-" } else { "" }, 10_u64.pow(digits));
    let (whole, rest) = (value.unsigned_abs() / unit, value.unsigned_abs() % unit);
    format!("{sign}{whole}.{rest:0width$}", width = digits as usize)
}

/// The year of a day since 1970.
pub fn year(day: i32) -> i32 {
    let guess = 1970 + (Diff::from(day) * 400).div_euclid(146_097) as i32;
    (guess - 1..=guess + 1)
        .rev()
        .find(|&year| first_day(year) <= day)
        .unwrap_or(guess)
}

/// The day since 1970 with which a year begins.
fn first_day(year: i32) -> i32 {
    let leap_days = |last: i32| last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400);
    365 * (year - 1970) + leap_days(year - 1) - leap_days(1969)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_all_digits() {
        assert_eq!(decimal(1_234_005, 4), "123.4005");
        assert_eq!(decimal(-5, 2), "-0.05");
    }

    #[test]
    fn years_begin_on_their_first_day() {
        let mut day = 0;
        for expected in 1970..2500 {
            let is_leap = expected % 4 == 0 && (expected % 100 != 0 || expected % 400 == 0);
            for _ in 0..365 + i32::from(is_leap) {
                assert_eq!(year(day), expected);
                day += 1;
            }
        }
    }
}
