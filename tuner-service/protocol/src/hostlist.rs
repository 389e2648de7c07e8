//! Slurm's hostlists (src/common/hostlist.c), such as `n[1-3,7],m2`.

/// The longest hostlist that is accepted.
const LONGEST: usize = 16 * 1024;

/// Returns true if a text has only characters of a hostlist, and is not too long.
#[must_use]
pub fn is_hostlist(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.,[]".contains(&byte);
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(plain)
}

/// Returns true if a hostlist names a host: `n[08-10]` has `n08`, but neither `n8` nor `n11`. A
/// malformed part names none.
#[must_use]
pub fn has_host(expression: &str, host: &str) -> bool {
    !host.is_empty() && parts(expression).any(|part| names(part, host))
}

/// The number of hosts that a hostlist names: 4 for `n[1-3],m2`; `None` if it is malformed.
#[must_use]
pub fn count_hosts(expression: &str) -> Option<u64> {
    parts(expression).try_fold(0_u64, |sum, part| sum.checked_add(count_of(part)?))
}

/// The number of hosts of one part: the product of the numbers of its brackets.
fn count_of(part: &str) -> Option<u64> {
    if part.is_empty() {
        return None;
    }
    let mut hosts = 1_u64;
    let mut rest = part;
    while let Some((before, inside)) = rest.split_once('[') {
        let (ranges, after) = inside.split_once(']')?;
        let count = |range: &str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
            last.checked_sub(first)?.checked_add(1)
        };
        let here = ranges
            .split(',')
            .try_fold(0_u64, |sum, range| sum.checked_add(count(range)?))?;
        hosts = hosts.checked_mul(here)?;
        if before.contains(']') {
            return None;
        }
        rest = after;
    }
    (!rest.contains(']')).then_some(hosts)
}

/// The parts of a hostlist, which commas outside of brackets separate.
fn parts(expression: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    expression.split(move |character: char| {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
}

fn names(part: &str, host: &str) -> bool {
    let Some((before, rest)) = part.split_once('[') else {
        return part == host;
    };
    let (Some((ranges, after)), Some(host)) = (rest.split_once(']'), host.strip_prefix(before))
    else {
        return false;
    };
    let digits = host.bytes().take_while(u8::is_ascii_digit).count();
    // The text after the brackets may begin with a digit too.
    (1..=digits).any(|end| {
        let (number, rest) = host.split_at(end);
        ranges.split(',').any(|range| is_in(range, number)) && names(after, rest)
    })
}

/// Returns true if a range such as `08-10` has a number that is written with as many digits as the
/// range's first number.
fn is_in(range: &str, number: &str) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (Ok(low), Ok(high), Ok(value)) = (first.parse::<u64>(), last.parse(), number.parse())
    else {
        return false;
    };
    (low..=high).contains(&value) && format!("{value:0width$}", width = first.len()) == number
}

/// The first host, which is the batch host (`hostlist_shift` on the sorted node list): `n1` of
/// `n[1-3,7],m2`, `r0n08` of `r[0-1]n[08-10]`; `None` if malformed.
#[must_use]
pub fn first_host(expression: &str) -> Option<String> {
    let mut host = String::new();
    let mut rest = expression;
    loop {
        match rest.find(['[', ',', ']']) {
            None => {
                host.push_str(rest);
                break;
            }
            Some(at) => {
                host.push_str(&rest[..at]);
                match rest.as_bytes()[at] {
                    b',' => break,
                    b'[' => {
                        let inside = &rest[at + 1..];
                        let end = inside.find(']')?;
                        let first = inside[..end].split([',', '-']).next()?;
                        if first.is_empty() || !first.bytes().all(|byte| byte.is_ascii_digit()) {
                            return None;
                        }
                        host.push_str(first);
                        rest = &inside[end + 1..];
                    }
                    _ => return None,
                }
            }
        }
    }
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_host_is_found() {
        for (expression, expected) in [
            ("n1", Some("n1")),
            ("n1,n2", Some("n1")),
            ("n[1-3,7],m2", Some("n1")),
            ("n[08-10]", Some("n08")),
            ("r[0-1]n[2-3]-ib", Some("r0n2-ib")),
            ("a3,b[1-2]", Some("a3")),
            ("", None),
            ("n[1-2", None),
            ("n]", None),
            ("n[x]", None),
        ] {
            assert_eq!(first_host(expression).as_deref(), expected, "{expression}");
        }
    }

    #[test]
    fn hosts_are_counted() {
        for (expression, expected) in [
            ("n1", Some(1)),
            ("n1,n2", Some(2)),
            ("n[1-3,7],m2", Some(5)),
            ("n[08-10]", Some(3)),
            ("r[0-1]n[2-3]-ib,x", Some(5)),
            ("", None),
            ("n1,", None),
            ("n[1-2", None),
            ("n1-2]", None),
            ("n[x]", None),
            ("n[3-1]", None),
            ("n[0-18446744073709551615]", None),
        ] {
            assert_eq!(count_hosts(expression), expected, "{expression}");
        }
    }

    #[test]
    fn a_host_is_in_a_list_that_names_it() {
        for (expression, host, expected) in [
            ("n1", "n1", true),
            ("n1", "n10", false),
            ("n[1-3,7],m2", "n2", true),
            ("n[1-3,7],m2", "n7", true),
            ("n[1-3,7],m2", "m2", true),
            ("n[1-3,7],m2", "n4", false),
            ("n[1-3,7],m2", "n", false),
            ("n[08-10]", "n09", true),
            ("n[08-10]", "n9", false),
            ("n[8-10]", "n10", true),
            ("n[8-10]", "n010", false),
            ("n[1-2]3", "n13", true),
            ("r[0-1]n[2-3]-ib", "r1n2-ib", true),
            ("r[0-1]n[2-3]-ib", "r1n4-ib", false),
            ("r[0-1]n[2-3]", "r0n", false),
            ("n[1-18446744073709551616]", "n2", false),
            ("n[1-2", "n1", false),
            ("n]", "n", false),
            ("", "", false),
        ] {
            assert_eq!(
                has_host(expression, host),
                expected,
                "{host} in {expression}"
            );
        }
    }

    #[test]
    fn what_is_no_hostlist_is_told() {
        assert!(is_hostlist("r[0-1]n[08-10]-ib,m_2.site"));
        for text in [
            "",
            "n1 n2",
            "None assigned",
            "(null)",
            "n1\n",
            &"n".repeat(LONGEST + 1),
        ] {
            assert!(!is_hostlist(text), "{text:?}");
        }
    }

    /// Attack (parsers): A list of hosts in the environment of prolog and epilog.
    /// Outcome: Only hosts of the list are in it.
    #[test]
    fn fuzz_hostlist() {
        let samples = ["n[1-3,7],m2", "r[0-1]n[08-10]-ib"];
        io_autotune_fuzzing::Target::new("hostlist", &samples).run(|input| {
            let Ok(text) = str::from_utf8(input) else {
                return;
            };
            let host = first_host(text);
            assert!(host.is_none_or(|host| !host.is_empty() && !host.contains(['[', ','])));
            assert!(!has_host(text, ""));
            assert!(
                !has_host("n[1-3,7],m2", text) || ["n1", "n2", "n3", "n7", "m2"].contains(&text)
            );
            let _ = has_host(text, "r0n08-ib");
        });
    }
}
