//! The proleptic Gregorian calendar in UTC, in integers.

use crate::{ParseError, Rule};

pub(crate) const SECONDS_PER_DAY: i64 = 86_400;

/// A date and time of day in UTC, without fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: u16,
    pub(crate) month: u8,
    pub(crate) day: u8,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: u8,
}

/// The position of each field of a [`Civil`] in the parsed text, for errors.
pub(crate) struct Positions {
    pub(crate) year: usize,
    pub(crate) month: usize,
    pub(crate) day: usize,
    pub(crate) hour: usize,
    pub(crate) minute: usize,
    pub(crate) second: usize,
}

impl Civil {
    /// Seconds since the Unix epoch; an error if the date or time does not exist (1.4).
    #[inline]
    pub(crate) fn unix(self, at: &Positions) -> Result<i64, ParseError> {
        if self.year == 0 || self.year > 9999 {
            return Err(ParseError::new(Rule::Year, at.year));
        }
        if !(1..=12).contains(&self.month) {
            return Err(ParseError::new(Rule::Month, at.month));
        }
        if self.day == 0 || self.day > days_in(self.year, self.month) {
            return Err(ParseError::new(Rule::Day, at.day));
        }
        if self.hour > 23 {
            return Err(ParseError::new(Rule::Hour, at.hour));
        }
        if self.minute > 59 {
            return Err(ParseError::new(Rule::Minute, at.minute));
        }
        if self.second > 59 {
            return Err(ParseError::new(Rule::Second, at.second));
        }
        let of_day = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        Ok(days_since_epoch(self) * SECONDS_PER_DAY + of_day)
    }

    /// The date and time of an instant within the years 0001 to 9999.
    #[inline]
    pub(crate) fn from_unix(seconds: i64) -> Self {
        let (year, month, day) = date_of(seconds.div_euclid(SECONDS_PER_DAY));
        // Less than a day, so all casts are lossless.
        let of_day = seconds.rem_euclid(SECONDS_PER_DAY) as u32;
        Self {
            year,
            month,
            day,
            hour: (of_day / 3600) as u8,
            minute: (of_day / 60 % 60) as u8,
            second: (of_day % 60) as u8,
        }
    }
}

fn days_in(year: u16, month: u8) -> u8 {
    const DAYS_PER_MONTH: [u8; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    DAYS_PER_MONTH[usize::from(month) - 1] + u8::from(leap && month == 2)
}

/// Days from 0000-03-01 to 1970-01-01. Counting years from March puts the leap day last.
const EPOCH_FROM_MARCH_0000: i64 = 719_468;

fn days_since_epoch(date: Civil) -> i64 {
    let (year, month) = (u32::from(date.year), u32::from(date.month));
    // January and February count to the previous year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_year = 365 * year + year / 4 - year / 100 + year / 400;
    let before_month = (153 * month + 2) / 5;
    i64::from(before_year + before_month + u32::from(date.day)) - 1 - EPOCH_FROM_MARCH_0000
}

fn date_of(days: i64) -> (u16, u8, u8) {
    // 306..=3_652_364 for the years 0001 to 9999: fits u32.
    let days = (days + EPOCH_FROM_MARCH_0000) as u32;
    let century = (4 * days + 3) / 146_097;
    let of_century = days - 146_097 * century / 4;
    let year = (4 * of_century + 3) / 1461;
    let of_year = of_century - 1461 * year / 4;
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    ((100 * century + year + carry) as u16, month as u8, day as u8)
}
