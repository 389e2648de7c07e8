//! Pins, freezes and similar changes: of one study, or of all studies of a scope, for which the
//! user is asked first.

use std::collections::BTreeMap;

use io_autotune_model::Objective;
use io_autotune_protocol::{
    ClientError, ObjectiveRequest, OrderKind, OrderRequest, OrderScope, OrderSummary, PinRequest,
    SiteDefault, StudySummary, WarmStartAnswer, WarmStartRequest, WhyRequest,
};
use jiff::Timestamp;

use crate::arguments::{self, Change, Ordering};
use crate::question::ask;
use crate::render::order::{command_of, named, scope as shown_scope, scope_with, undoing};
use crate::render::{status, steering as render};
use crate::screen::Screen;
use crate::service::{CliError, Service, meant, nearest};
use crate::targets::{Named, Target, WordError};
use crate::{Answer, output_of};

const NAME_ONE: &str = "name a study, an application, or a scope such as --all";

/// The meaning of the words of a `pin`.
#[derive(Debug, PartialEq)]
struct Words {
    target: Option<Target>,
    values: PinTo,
}

#[derive(Debug, PartialEq)]
enum PinTo {
    /// The present recommendation.
    Best,
    /// These values; none means the default.
    Values(BTreeMap<String, String>),
}

/// Reads `[TARGET] [best | default | NAME=VALUE...]`; there is no target if there is a scope.
fn words(words: &[String], has_scope: bool) -> Result<Words, CliError> {
    let mut rest = words;
    let target = match (words, has_scope) {
        (_, true) => None,
        ([], false) => {
            return Err(usage(NAME_ONE));
        }
        ([target, after @ ..], false) => {
            rest = after;
            Some(target_of(target)?)
        }
    };
    let values = match rest {
        [] => PinTo::Best,
        [word] if word == "best" => PinTo::Best,
        [word] if word == "default" => PinTo::Values(BTreeMap::new()),
        [_, _, ..] if rest.iter().any(|word| word == "best" || word == "default") => {
            return Err(usage(
                "best and default stand alone: write one of them, or name=value, such as cb_nodes=2",
            ));
        }
        values => PinTo::Values(pinned(values)?),
    };
    Ok(Words { target, values })
}

/// The values of `NAME=VALUE` words, each of another parameter.
fn pinned(words: &[String]) -> Result<BTreeMap<String, String>, CliError> {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    for word in words {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => (name, value),
            _ => {
                return Err(usage(&format!(
                    "{word:?} is none of best, default and name=value, such as cb_nodes=2"
                )));
            }
        };
        if let Some(before) = values.insert(name.to_owned(), value.to_owned()) {
            return Err(usage(&format!(
                "nothing was changed: {name} is given twice, as {before} and as {value}"
            )));
        }
    }
    Ok(values)
}

fn target_of(word: &str) -> Result<Target, CliError> {
    word.parse()
        .map_err(|error: WordError| usage(&format!("{word}: {error}")))
}

fn usage(message: &str) -> CliError {
    CliError::Usage(message.to_owned())
}

/// Pins, or ends a pin.
pub(crate) async fn pin(
    service: &Service,
    given: &[String],
    how: &Ordering,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let (scope, change, until) = (how.scope.of(), &how.change, how.until);
    if how.end {
        return end_pin(service, given, scope, change, screen).await;
    }
    let Words { target, values } = words(given, scope.is_some())?;
    match (target, scope, values) {
        (Some(target), _, values) => {
            let study_id = service.resolve(&target).await?;
            let body = PinRequest {
                values: match values {
                    PinTo::Best => None,
                    PinTo::Values(values) => Some(values),
                },
                until,
                why: change.why(),
            };
            one(service, study_id, "pin", &body, "pinned", change, screen).await
        }
        // Each study has its own best, which is known already: nothing is explored meanwhile.
        (None, Some(scope), PinTo::Best) => {
            let order = Order {
                until,
                called: "pin to the best known",
                ..Order::to(OrderKind::Freeze, scope)
            };
            many(service, order, change, screen).await
        }
        (None, Some(scope), PinTo::Values(values)) => {
            let order = Order {
                values: Some(values),
                until,
                ..Order::to(OrderKind::Pin, scope)
            };
            many(service, order, change, screen).await
        }
        (None, None, _) => Err(usage(NAME_ONE)),
    }
}

/// Ends a study's own pin, or that of a scope.
async fn end_pin(
    service: &Service,
    given: &[String],
    scope: Option<OrderScope>,
    change: &Change,
    screen: &Screen,
) -> Result<Answer, CliError> {
    match (given, scope) {
        ([target], None) => {
            let target = target_of(target)?;
            one_study(service, &target, "unpin", "unpinned", change, screen).await
        }
        ([], Some(scope)) => {
            let order = Order::end_of(OrderKind::Pin, scope);
            many(service, order, change, screen).await
        }
        ([], None) => Err(usage(NAME_ONE)),
        _ => Err(usage(
            "what ends a pin names its study or its scope, and no values",
        )),
    }
}

/// Freezes or turns off, or ends that.
pub(crate) async fn order(
    service: &Service,
    kind: OrderKind,
    given: &arguments::Order,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let how = &given.how;
    let named = match &given.target {
        Some(target) => Some(service.named(target).await?),
        None => None,
    };
    let scope = scope_of(named, how.scope.of())?;
    let order = match how.end {
        true => Order::end_of(kind, scope),
        false => Order {
            until: how.until,
            ..Order::to(kind, scope)
        },
    };
    many(service, order, &how.change, screen).await
}

/// Makes a setting the site's default: these values, or what the studies have in common.
pub(crate) async fn make_site_default(
    service: &Service,
    accelerator: &str,
    values: &[String],
    until: Option<Timestamp>,
    change: &Change,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let values = match values {
        [] => in_common(&service.site_defaults(accelerator).await?)?,
        given => pinned(given)?,
    };
    let order = Order {
        values: Some(values),
        until,
        ..Order::to(OrderKind::SiteDefault, of_accelerator(accelerator))
    };
    many(service, order, change, screen).await
}

/// Ends the site's default.
pub(crate) async fn end_site_default(
    service: &Service,
    accelerator: &str,
    change: &Change,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let order = Order::end_of(OrderKind::SiteDefault, of_accelerator(accelerator));
    many(service, order, change, screen).await
}

fn of_accelerator(name: &str) -> OrderScope {
    OrderScope {
        accelerator: Some(name.to_owned()),
        ..OrderScope::default()
    }
}

/// The values that the studies have in common, if that is one setting.
fn in_common(clusters: &[SiteDefault]) -> Result<BTreeMap<String, String>, CliError> {
    let found = clusters.iter().filter_map(|one| one.in_common.as_ref());
    let found: Vec<_> = found.map(|one| &one.values).collect();
    match found.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            let values = first.0.iter();
            Ok(values
                .map(|(name, value)| (name.clone(), value.to_string()))
                .collect())
        }
        [] => Err(usage(
            "nothing was changed: the studies have no setting in common (`io-autotune accelerators \
             site-default ACCELERATOR` says why); name the values, such as --apply cb_nodes=2",
        )),
        _ => Err(usage(
            "nothing was changed: the clusters have different settings in common; name one with \
             --cluster, or the values",
        )),
    }
}

/// An order for many studies, or the end of one.
struct Order {
    kind: OrderKind,
    scope: OrderScope,
    values: Option<BTreeMap<String, String>>,
    until: Option<Timestamp>,
    ends: bool,
    /// The name of the order as the user gave it.
    called: &'static str,
}

impl Order {
    fn to(kind: OrderKind, scope: OrderScope) -> Self {
        Self {
            kind,
            scope,
            values: None,
            until: None,
            ends: false,
            called: match kind {
                OrderKind::SiteDefault => "site's default",
                other => command_of(other),
            },
        }
    }

    fn end_of(kind: OrderKind, scope: OrderScope) -> Self {
        Self {
            ends: true,
            called: match kind {
                OrderKind::Pin => "end of pin",
                OrderKind::Freeze => "end of freeze",
                OrderKind::Off => "end of off",
                OrderKind::SiteDefault => "end of the site's default",
            },
            ..Self::to(kind, scope)
        }
    }
}

/// The scope of one study, or of all studies of an application.
fn scope_of(named: Option<Named>, scope: Option<OrderScope>) -> Result<OrderScope, CliError> {
    match (named, scope) {
        (Some(_), Some(scope)) if scope.application.is_some() || scope.study.is_some() => {
            Err(usage("name the application once"))
        }
        (Some(Named::Study(study)), scope) => Ok(OrderScope {
            study: Some(study),
            ..scope.unwrap_or_default()
        }),
        (Some(Named::Application(name)), scope) => Ok(OrderScope {
            application: Some(name),
            ..scope.unwrap_or_default()
        }),
        (None, Some(scope)) => Ok(scope),
        (None, None) => Err(usage(NAME_ONE)),
    }
}

/// Changes one study, with a reason as the only parameter.
pub(crate) async fn one_study(
    service: &Service,
    target: &Target,
    action: &str,
    done: &str,
    change: &Change,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let study_id = service.resolve(target).await?;
    let body = WhyRequest { why: change.why() };
    one(service, study_id, action, &body, done, change, screen).await
}

/// Changes one study, or shows it unchanged in a dry run.
async fn one<B: serde::Serialize>(
    service: &Service,
    study_id: i64,
    action: &str,
    body: &B,
    done: &str,
    change: &Change,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let study: StudySummary = match change.dry_run {
        true => service.study(study_id).await?.study,
        false => service.steer(study_id, action, body).await?,
    };
    let of = named(study_id, &study.application);
    let said = match (action, change.dry_run) {
        ("reset", true) => render::would_reset(&study, screen),
        (_, true) => format!("dry run: {of} would be {done}."),
        (_, false) => format!("{of}: {done}."),
    };
    let undo_is = match (action, study.line) {
        ("reset", Some(_)) => render::UNDO_OF_RESET,
        _ => "",
    };
    output_of(change.output.json, &study, |study| {
        format!(
            "{said}\n{}{undo_is}\n{}",
            undoing(study.line, change.has_reason()),
            status::study(study, screen)
        )
    })
}

/// Gives a study another objective.
pub(crate) async fn objective(
    service: &Service,
    words: &[String],
    maximise: bool,
    change: &Change,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let [target, word] = words else {
        return Err(usage(
            "name a study and its objective, such as `io-autotune objective ocean marked`; in a job NAME=VALUE",
        ));
    };
    let objective = Objective::named(word, maximise).map_err(|error| usage(&error.to_string()))?;
    let study_id = service.resolve(&target_of(target)?).await?;
    let body = ObjectiveRequest {
        objective: word.clone(),
        maximise,
        why: change.why(),
    };
    let done = format!("made to have the objective {objective}: a new epoch");
    one(service, study_id, "objective", &body, &done, change, screen).await
}

/// Starts a study's next epoch with the results of another study.
pub(crate) async fn warm_start(
    service: &Service,
    target: &Target,
    from: &Target,
    change: &Change,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let study_id = match service.resolve(target).await {
        Err(CliError::NoStudy { name, .. }) => return Err(CliError::NotBegun(name)),
        other => other?,
    };
    let request = WarmStartRequest {
        from: service.resolve(from).await?,
        dry_run: change.dry_run,
        why: change.why(),
    };
    let answer = service.warm_start(study_id, &request).await?;
    output_of(change.output.json, &answer, |answer: &WarmStartAnswer| {
        render::warm_start(answer, change.has_reason(), screen)
    })
}

async fn many(
    service: &Service,
    order: Order,
    change: &Change,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let Order {
        kind,
        scope,
        values,
        until,
        ends,
        called,
    } = order;
    let request = OrderRequest {
        kind,
        scope: OrderScope {
            cluster: service.cluster().map(str::to_owned),
            ..scope
        },
        values,
        until,
        dry_run: true,
        why: change.why(),
    };
    let would = match service.order(&request, ends).await {
        Err(CliError::Client(ClientError::Refused { status: 409, .. })) if ends => {
            return Err(not_ordered(kind, &request.scope, &service.orders().await?));
        }
        other => other?,
    };
    // Studies of an accelerator that has left the catalogue can still be steered.
    if let (false, true, Some(name)) = (ends, would.studies.is_empty(), &request.scope.accelerator)
    {
        let known = service.accelerators().await?;
        is_known(name, known.into_iter().map(|one| one.name))?;
    }
    let of_study = would.studies.first().map(|one| one.application.as_str());
    let what = format!("{called} of {}", scope_with(&request.scope, of_study));
    if change.dry_run {
        return output_of(change.output.json, &would, |would| {
            format!("dry run: {what}.\n\n{}", render::affected(would, screen))
        });
    }
    let is_none = would.studies.is_empty() && !ends;
    let is_one = would.studies.len() <= 1 && is_of_one(&request.scope) && !is_none;
    if is_none && !change.yes {
        let unknown = match &request.scope.application {
            Some(name) => service.unknown(name).await,
            None => "no study is of this scope".to_owned(),
        };
        ask(&what, ", for studies that begin later", &unknown).map_err(|error| match error {
            CliError::NotSure(what) => CliError::NoneYet { what, unknown },
            other => other,
        })?;
    } else if !is_one && !change.yes {
        let list = render::affected(&would, screen);
        ask(&what, ": studies that begin later too", &list)?;
    }
    let request = OrderRequest {
        dry_run: false,
        ..request
    };
    let answer = service.order(&request, ends).await?;
    output_of(change.output.json, &answer, |answer| {
        format!(
            "done: {what}.\n{}\n{}",
            undoing(answer.line, change.has_reason()),
            render::affected(answer, screen)
        )
    })
}

/// Returns an error unless the catalogue has each accelerator of a name such as `a+b`.
fn is_known(name: &str, known: impl Iterator<Item = String>) -> Result<(), CliError> {
    let known: Vec<String> = known.collect();
    if known.iter().any(|one| one == name) {
        return Ok(());
    }
    let Some(unknown) = name
        .split('+')
        .find(|part| !known.iter().any(|one| one == part))
    else {
        return Ok(());
    };
    let mean = meant(&nearest(unknown, known.into_iter()));
    Err(usage(&format!(
        "nothing was changed: the catalogue has no accelerator {unknown:?}{mean}; `io-autotune accelerators list` lists them"
    )))
}

/// An error that there is no such order in a scope, with the nearest applications that have one.
fn not_ordered(kind: OrderKind, of: &OrderScope, orders: &[OrderSummary]) -> CliError {
    let is = match kind {
        OrderKind::Pin => "pinned",
        OrderKind::Freeze => "frozen",
        OrderKind::Off => "off",
        OrderKind::SiteDefault => "made the site's default",
    };
    let those = orders.iter().filter(|order| order.kind == kind);
    let names = those.filter_map(|order| order.scope.application.clone());
    let mean = match &of.application {
        Some(name) => meant(&nearest(name, names)),
        None => String::new(),
    };
    CliError::NotOrdered(format!(
        "nothing of this scope is {is}: {}{mean}; `io-autotune audit orders` lists what is ordered",
        shown_scope(of)
    ))
}

/// Returns true if a scope is a single study or application, which is what users name.
fn is_of_one(scope: &OrderScope) -> bool {
    scope.study.is_some() || scope.application.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, has_scope: bool) -> Result<Words, CliError> {
        let given: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words(&given, has_scope)
    }

    #[test]
    fn a_pin_is_to_the_best_to_the_default_or_to_values() {
        let two = BTreeMap::from([("cb_nodes".to_owned(), "2".to_owned())]);
        let ocean = Some(Target::Application("ocean".to_owned()));
        for (text, has_scope, target, values) in [
            ("ocean", false, ocean.clone(), PinTo::Best),
            ("ocean best", false, ocean.clone(), PinTo::Best),
            (
                "12 default",
                false,
                Some("12".parse().unwrap()),
                PinTo::Values(BTreeMap::new()),
            ),
            ("ocean cb_nodes=2", false, ocean, PinTo::Values(two.clone())),
            ("default", true, None, PinTo::Values(BTreeMap::new())),
            ("cb_nodes=2", true, None, PinTo::Values(two)),
            ("", true, None, PinTo::Best),
        ] {
            assert_eq!(
                said(text, has_scope).unwrap(),
                Words { target, values },
                "{text}"
            );
        }
        for (text, has_scope) in [
            ("", false),
            ("ocean worst", false),
            ("ocean best cb_nodes=2", false),
            ("cb_nodes=2 default", true),
            ("ocean", true),
            ("o a= b=1", false),
            ("job:3", false),
        ] {
            let error = said(text, has_scope).unwrap_err();
            assert_eq!(error.status(), 2, "{text}: {error}");
        }
        let error = said("ocean best cb_nodes=2", false)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("best and default stand alone"), "{error}");
    }

    #[test]
    fn a_parameter_that_is_given_twice_is_refused_with_both_values() {
        for (text, has_scope, told) in [
            (
                "ocean cb_nodes=2 b=1 cb_nodes=4",
                false,
                "cb_nodes is given twice, as 2 and as 4",
            ),
            ("a=1 a=1", true, "a is given twice, as 1 and as 1"),
        ] {
            let error = said(text, has_scope).unwrap_err();
            assert_eq!(error.status(), 2, "{text}");
            assert!(error.to_string().contains(told), "{error}");
        }
    }

    #[test]
    fn an_accelerator_that_the_catalogue_lacks_is_refused_with_the_nearest_ones() {
        let known = || {
            ["romio", "lustre-client", "lustre-online"]
                .map(str::to_owned)
                .into_iter()
        };
        assert!(is_known("romio", known()).is_ok());
        assert!(is_known("lustre-client+lustre-online", known()).is_ok());
        let error = is_known("romoi", known()).unwrap_err();
        assert_eq!(error.status(), 2);
        let said = error.to_string();
        assert!(
            said.contains("no accelerator \"romoi\" (there is romio);"),
            "{said}"
        );
    }

    #[test]
    fn what_is_not_off_is_named_with_the_nearest_that_is() {
        let of = |name: &str| OrderScope {
            application: Some(name.to_owned()),
            ..OrderScope::default()
        };
        let order = |kind, name: &str| OrderSummary {
            order_id: Some(1),
            kind,
            scope: of(name),
            values: None,
            uid: 0,
            user: None,
            why: "a test".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            until: None,
            is_over: false,
            may_end: true,
        };
        let orders = [
            order(OrderKind::Off, "ocean"),
            order(OrderKind::Freeze, "oceans"),
        ];
        let error = not_ordered(OrderKind::Off, &of("ocaen"), &orders);
        assert_eq!(error.status(), 4);
        assert_eq!(
            error.to_string(),
            "nothing of this scope is off: application ocaen (there is ocean); `io-autotune audit orders` lists what is ordered"
        );
    }
}
