//! The first host of a Slurm hostlist is the batch host (`hostlist_shift` on the sorted node list).

/// `n1` of `n[1-3,7],m2`, `r0n08` of `r[0-1]n[08-10]`; `None` if malformed.
pub(crate) fn first_host(expression: &str) -> Option<String> {
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
    fn fuzz_hostlist() {
        let samples = ["n[1-3,7],m2", "r[0-1]n[08-10]-ib"];
        io_autotune_fuzzing::Target::new("hostlist", &samples).run(|input| {
            let host = str::from_utf8(input).ok().and_then(first_host);
            assert!(host.is_none_or(|host| !host.is_empty() && !host.contains(['[', ','])));
        });
    }
}
