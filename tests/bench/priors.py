"""What it costs that studies begin from what others have learnt."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean

from bench.figures import Aim, Figure, mean_of_rounds, ratio_of_rounds
from bench.lives import CLIENTS, live
from bench.place import Place, Service, in_turn

SOURCES = 10_000
WAVES, AT_ONCE = 5, 8
"""Runs of a study: so many at once, whose verdicts are awaited. It does not settle, so each start
has what others have learnt."""
AIM = Aim(2.0)

MULTIPLIED = """
with known as (
    select row_number() over (order by f.study_id) - 1 as place, count(*) over () as all_known,
           f.accelerator, f.space_key, f.judged, f.measures, f.learnt, e.space, e.seed, s.context,
           s.context_key, s.cluster
    from sources f join epochs e on e.id = f.epoch_id join studies s on s.id = f.study_id
), made as (
    insert into applications (owner_uid, name)
    select 1, 'source-' || n from generate_series(1, {sources}) n returning id
), of_made as (
    select made.id as application_id, known.*
    from made join known on made.id % known.all_known = known.place
), begun as (
    insert into studies (application_id, accelerator, context, context_key, cluster)
    select application_id, accelerator, context, context_key, cluster from of_made
    returning id, application_id
), opened as (
    insert into epochs (study_id, ordinal, takes, space, seed, opened_why)
    select begun.id, 1, 'nothing', space, seed, 'made up'
    from begun join of_made using (application_id) returning id, study_id
)
insert into sources (study_id, epoch_id, accelerator, space_key, judged, measures, learnt)
select opened.study_id, opened.id, accelerator, space_key, judged,
       coalesce((select jsonb_object_agg(key, value::float8 + random())
                 from jsonb_each_text(measures)), '{{}}'),
       learnt
from opened join begun on begun.id = opened.study_id join of_made using (application_id)
"""
"""Copies of what there is, each with measures of its own."""


@dataclass
class Rounds:
    """What the rounds of one side gave."""

    costs: list[float] = field(default_factory=list)
    """Milliseconds of the service's and PostgreSQL's processor time for a life."""
    transactions: list[float] = field(default_factory=list)
    """PostgreSQL's, for a life."""
    starts: list[float] = field(default_factory=list)
    """The median of a start, in milliseconds."""


def figures(place: Place, rounds: int, lives: int, sources: int = SOURCES) -> list[Figure]:
    """Measure, and return the figures."""
    with place.database("bench_priors") as database:
        with place.service(database) as service:
            _waves(place, service, "learning", 20)
        place.sql(database, MULTIPLIED.format(sources=sources))
        ((known,),) = place.sql(database, "select count(*) from sources")
        assert int(known) >= sources, f"{known} sources"
        done = {"site": Rounds(), "off": Rounds()}
        with place.database("bench_priors_off", database) as alone:
            sides = {"site": database, "off": alone}
            with (
                place.service(sides["site"]) as with_priors,
                place.service(sides["off"], study='prior = "off"') as without,
            ):
                services = {"site": with_priors, "off": without}
                for number, side in enumerate(in_turn(rounds, "site", "off")):
                    place.sql(sides[side], "vacuum analyze")
                    _round(place, services[side], done[side], f"round-{number}", lives)
    return _figures(done, sources, f"{rounds} rounds of {lives} lives each")


def _round(place: Place, service: Service, done: Rounds, name: str, lives: int) -> None:
    users = {"io-autotuned": service.identity.pid, "postgresql": place.pid_of("postgresql")}
    before = _transactions(place, service)
    with place.using(users) as used:
        starts = _waves(place, service, name, lives // (WAVES * AT_ONCE))
    done.costs.append(sum(used.values()) / lives * 1e3)
    done.transactions.append((_transactions(place, service) - before) / lives)
    done.starts.append(starts)


def _waves(place: Place, service: Service, name: str, studies: int) -> float:
    """Let so many studies run; return the median of a start, in milliseconds, over waves."""
    summaries = [
        live(place, service, name, AT_ONCE * studies, studies=studies)[0] for _ in range(WAVES)
    ]
    return fmean(summary["starts"]["median"] for summary in summaries)


def _transactions(place: Place, service: Service) -> int:
    query = "select xact_commit from pg_stat_database where datname = current_database()"
    ((count,),) = place.sql(service.database, query)
    return int(count)


def _figures(done: dict[str, Rounds], sources: int, how: str) -> list[Figure]:
    site, off = done["site"], done["off"]

    def sides(what: str, unit: str) -> str:
        both = (mean_of_rounds(getattr(side, what)).value for side in (site, off))
        return " against ".join(f"{value:.2f}" for value in both) + f" {unit}"

    return [
        Figure(
            f"a life with {sources} studies to begin from, against without priors",
            "ratio",
            ratio_of_rounds(site.costs, off.costs),
            AIM,
            f"processor time of service and PostgreSQL: {sides('costs', 'ms')};"
            f" transactions {sides('transactions', 'a life')}; {CLIENTS} clients,"
            f" {WAVES} times {AT_ONCE} runs of each study; {how}",
        ),
        Figure(
            f"a start with {sources} studies to begin from, against without priors",
            "ratio",
            ratio_of_rounds(site.starts, off.starts),
            AIM,
            f"medians: {sides('starts', 'ms')}",
        ),
    ]
