"""The Python API: align two graphs from some known links.

Examples:
    >>> from emea import Aligner, graph_of
    >>> family = [("anna", "mother_of", "ben"), ("anna", "in", "graz"), ("ben", "knows", "cleo")]
    >>> familie = [("Anna", "Mutter", "Ben"), ("Anna", "Wohnort", "Graz"), ("Ben", "kennt", "Cleo")]
    >>> links = [("anna", "Anna"), ("cleo", "Cleo"), ("graz", "Graz")]
    >>> aligner = Aligner(model="lightea", em="dual", settings=["em.iterations=2"])
    >>> aligner = aligner.fit(graph_of(family), graph_of(familie), links)
    >>> {match.source: match.target for match in aligner.predict()}["ben"]
    'Ben'
    >>> aligner.evaluate([("ben", "Ben")]).hit_at_1
    1.0
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from emea.answer.decision import Decision, with_given
from emea.answer.exporting import selected, top_candidates
from emea.answer.schema import Schema, TermMatch
from emea.answer.settings import ExportSettings
from emea.answer.summary import continuing_lines, result_lines
from emea.config.command_line import check_option, check_overrides
from emea.config.composition import composed, search_also
from emea.config.typed_choices import (
    Choice,
    DecodingSettings,
    EMSettings,
    EncoderSettings,
    LiteralsSettings,
    ModelSettings,
    RuleSettings,
    TrainingSettings,
    choice,
)
from emea.config.usual_settings import AUTO, fitting_settings, with_own
from emea.data.arrays import NO_MATCH
from emea.data.graph import KnowledgeGraph
from emea.data.settings import Cardinality
from emea.data.sources.library_inputs import (
    checked_path,
    described,
    graph_of,
    link_ids,
    pair_of,
    read_graph,
    read_links,
)
from emea.data.split import has_literals
from emea.errors import ConfigError, DataError, UserError
from emea.evaluation.joint_ranks import candidate_ranks
from emea.evaluation.metric_table import RANKING_METRICS, Evaluation
from emea.evaluation.metrics import mapping_metrics, unknown_pairs
from emea.evaluation.ranks import filtered, ranking_metrics
from emea.explain.alignment_page import run_page, write_page
from emea.explain.explainer import Explainer
from emea.explain.explanation import Explanation
from emea.explain.text import plain_text
from emea.record.file_names import ALIGNMENT_FILE
from emea.record.run_record import is_run_folder
from emea.run.building import check_export
from emea.run.finished_run import FinishedRun, load_run, read_records, write_run
from emea.run.job import run_job
from emea.run.method_choice import is_open, suited
from emea.run.predicting import run_decision, run_schema
from emea.suggest import suggest

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Aligner",
    "Evaluation",
    "Match",
    "ToLabel",
    "graph_of",
    "read_graph",
    "read_links",
]


ALWAYS = ("split=known", "tracking=none")
"""Settings of every run of the Python API."""

NOTHING_TO_LEARN = (
    "There is nothing to learn from. Give known pairs of names, fit(source, target, links=[...]), "
    "or read both graphs with their literals: read_graph(path, literals=True), or attributes=[...] "
    "for the columns of a table."
)


class Match(NamedTuple):
    """A source entity and its counterpart.

    ``target`` is ``None`` if no candidate is probable enough. ``candidates`` are the most probable
    targets with their probabilities, best first, with or without a match.
    """

    source: str
    target: str | None
    probability: float
    candidates: list[tuple[str, float]]


class ToLabel(NamedTuple):
    """A source entity whose label would help.

    ``candidates`` are its most probable targets with their probabilities, best first.
    ``uncertainty`` is the probability that the best one is wrong. ``score`` is ``uncertainty``
    times one plus the expected number of uncertain neighbours that its match determines. It
    shrinks if earlier suggestions determine the same neighbours.
    """

    source: str
    candidates: list[tuple[str, float]]
    score: float
    uncertainty: float


class Aligner:
    """Aligns the entities of two graphs.

    A part of the method is the name of an option, or its settings as an object, all of which hold.

    Examples:
        >>> from emea import LightEASettings, OneToOneSettings
        >>> Aligner(model=LightEASettings(dim=256), em=OneToOneSettings(iterations=3))
        Aligner(model='lightea', em='one_to_one', not fitted)

    Args:
        model: The encoder, an option of ``conf/model``. ``auto`` is ``lightea`` on a CPU, which
            needs no training, and ``rrea`` on a GPU. Settings of an encoder
            (``LightEASettings``) keep the defaults of the schedule; those of the whole option are
            ``LightEAModelSettings``.
        em: ``one_to_one`` (one-to-one inference), ``dual`` (two-way compatibility), ``paper``
            (EMEA) or ``none``. ``auto`` is ``one_to_one``. If both are ``auto``, several
            independent encoders are used (docs/own_graphs.md).
        settings: Further settings as on the command line, such as ``"em.iterations=3"``.
        folder: Folder in which the run keeps all its records and weights. With ``None``, nothing is
            written unless you call ``save``.
        config_dir: Folder with your own options, such as ``model/my_encoder.yaml``. Name the
            modules of their classes in the settings: ``"trust=[my_encoder]"``.
        rule: The rules that measure compatibility, an option of ``conf/rule``.
        literals: The evidence from literals, an option of ``conf/literals``.
        training: The first training, an option of ``conf/training``.
        decoding: How the beliefs become an answer, an option of ``conf/decoding``.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value; the message suggests the nearest.
    """

    def __init__(
        self,
        model: str | EncoderSettings | ModelSettings = AUTO,
        em: str | EMSettings = AUTO,
        settings: Sequence[str] = (),
        folder: str | Path | None = None,
        config_dir: str | Path | None = None,
        *,
        rule: str | RuleSettings | None = None,
        literals: str | LiteralsSettings | None = None,
        training: str | TrainingSettings | None = None,
        decoding: str | DecodingSettings | None = None,
    ) -> None:
        own = [] if config_dir is None else [checked_path(config_dir, "config_dir")]
        search_also(own)
        encoder, of_encoder = _checked_choice("model", model)
        step, of_step = _checked_choice("em", em)
        others: dict[str, object] = {"rule": rule, "literals": literals}
        others |= {"training": training, "decoding": decoding}
        further = [*of_encoder, *of_step, *_settings_of(others)]
        further += _checked_settings(settings)
        has_gpu = torch.cuda.is_available()
        chosen = [*fitting_settings(encoder, step, has_gpu), *ALWAYS]
        if step == "none" and rule is None:
            chosen.append("rule=none")
        usual = [one for one in chosen if one not in (f"model={encoder}", f"em={step}")]
        chosen = with_own(chosen, further)
        if further:
            folders = [f"--config-dir={folder}" for folder in own]
            check_overrides([*folders, *chosen], usual)
        self._config = composed(chosen)
        is_auto = encoder == step == AUTO and is_open(further)
        self._open = [*ALWAYS, *further] if is_auto else None
        self._folder = None if folder is None else checked_path(folder, "folder")
        self._explainer: Explainer | None = None

    def __repr__(self) -> str:
        name = f"Aligner(model={self._config.model.name!r}, em={self._config.em.name!r}"
        if self._explainer is None:
            return f"{name}, not fitted)"
        pair = self._explainer.run.pair
        labels = self._explainer.run.labels
        return f"{name}, source={pair.source!r}, target={pair.target!r}, {len(labels):,} labels)"

    @classmethod
    def load(cls, folder: str | Path, trust: Sequence[str] = ()) -> "Aligner":
        """Load an aligner from a folder that ``save`` wrote, or from any finished run.

        It gives the same matches as before. A new ``fit`` does not change the folder.

        Args:
            folder: The run folder.
            trust: Modules outside this package whose classes the settings may use.

        Raises:
            UserError: If the folder does not contain a finished run, or its files are damaged.
        """
        place = checked_path(folder, "folder")
        aligner = cls.__new__(cls)
        run = load_run(place, trust)
        aligner._config, aligner._folder, aligner._open = run.config, None, None
        aligner._take(run)
        return aligner

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Save matches, beliefs, graphs and settings.

        ``Aligner.load``, ``emea predict`` and ``emea explain`` can read the folder. It does not
        contain the encoder's weights; ``Aligner(folder=...)`` keeps them.

        Args:
            folder: A new or empty folder.
            overwrite: Replace the run that the folder contains, if there is one.

        Raises:
            DataError: If the folder contains a run and ``overwrite`` is not set, if it has other
                content, or if it cannot be written.
        """
        place = checked_path(folder, "folder")
        fitted = self._fitted
        if not overwrite and is_run_folder(place):
            raise DataError(
                f"{place} contains a run. Choose another folder, or replace the run with "
                "save(folder, overwrite=True)."
            )
        write_run(place, fitted.run, self._records)

    def fit(
        self,
        source: KnowledgeGraph,
        target: KnowledgeGraph,
        links: Iterable[tuple[str, str]] = (),
        rejected: Iterable[tuple[str, str]] = (),
    ) -> "Aligner":
        """Align two graphs, using links as labels; some of them are held out for validation.

        Args:
            source: The source graph, whose entities get a match.
            target: The target graph, in which matches are searched.
            links: Pairs of entity names, the source entity first (or last, if only that fits the
                graphs). An entity may occur in one link only. All links are in the answer. They are
                optional if the graphs were read with literals.
            rejected: Pairs that are in no answer. An entity may occur in several of them.

        Raises:
            DataError: If a link names an unknown entity, links contradict each other, are rejected,
                or are too few.
        """
        cardinality = Cardinality(self._config.cardinality)
        pair = pair_of(source, target, links, rejected, cardinality)
        if not len(pair.links) and not has_literals(pair):
            raise DataError(NOTHING_TO_LEARN)
        config = self._config.copy()
        if (own := self._open) is not None:  # the data may choose the method
            has_gpu = torch.cuda.is_available()
            found = suited(
                lambda usual: composed(with_own(usual, own)), pair, True, has_gpu
            )
            config, pair = composed(with_own(found.settings, own)), found.pair
        config.data = {"name": pair.name}
        with tempfile.TemporaryDirectory(prefix="emea-") as scratch:
            folder = self._folder or Path(
                scratch
            )  # checkpoints are written during training
            # The random generators of the caller must not change.
            with torch.random.fork_rng(range(torch.cuda.device_count())):
                self._take(run_job(config, folder, pair=pair))
        return self

    def _take(self, run: FinishedRun) -> None:
        """Use a finished run; its folder is not needed afterwards."""
        self._explainer, self._records = Explainer(run), read_records(run.folder)

    def predict(
        self,
        top_k: int | None = None,
        threshold: float | None = None,
        target_precision: float | None = None,
    ) -> list[Match]:
        """Return a match for every source entity, training links included.

        With another ``cardinality`` than one-to-one, a source entity may have several matches.

        Arguments that you leave out use the ``export`` settings, which default to one candidate and
        no threshold. ``threshold=0`` accepts every match.

        Args:
            top_k: Number of candidates per entity.
            threshold: Minimum probability of a match.
            target_precision: Choose the threshold that reaches this precision on the links held
                out for validation.

        Raises:
            ConfigError: If a value is out of range.
        """
        run = self._fitted.run
        decision, settings = self._decided(
            top_k=top_k, threshold=threshold, target_precision=target_precision
        )
        others, other_probs = top_candidates(decision.beliefs, settings.top_k)
        name_of = run.pair.target.entity_name
        matches = []
        for entity, best, share in zip(*selected(decision.answer), strict=True):
            target = None if best == NO_MATCH else name_of(int(best))
            both = zip(
                others[entity].tolist(), other_probs[entity].tolist(), strict=True
            )
            candidates = [
                (name_of(candidate), prob) for candidate, prob in both if prob
            ]
            source = run.pair.source.entity_name(int(entity))
            matches.append(Match(source, target, float(share), candidates))
        return matches

    def to_frame(
        self, threshold: float | None = None, target_precision: float | None = None
    ) -> "pd.DataFrame":
        """Return the matches as a pandas DataFrame, one row per source entity.

        Columns: ``source``, ``target`` (``None`` without a match), ``probability`` (0 without a
        match), ``is_label`` (whether it is a training link), ``candidate`` and
        ``candidate_probability`` (the most probable target, with or without a match).

        Args:
            threshold: Minimum probability of a match.
            target_precision: Choose the threshold that reaches this precision on the links held
                out for validation.
        """
        import pandas as pd  # slow to import

        matches = self.predict(1, threshold, target_precision)
        run = self._fitted.run
        labelled = {
            (run.pair.source.entity_name(one), run.pair.target.entity_name(other))
            for one, other in run.labels.tolist()
        }
        best = [
            match.candidates[0] if match.candidates else (None, 0.0)
            for match in matches
        ]
        # dtype=object keeps None for a missing target in all versions of pandas.
        return pd.DataFrame(
            {
                "source": pd.Series([match.source for match in matches], dtype=object),
                "target": pd.Series([match.target for match in matches], dtype=object),
                "probability": [match.probability for match in matches],
                "is_label": [match[:2] in labelled for match in matches],
                "candidate": pd.Series([name for name, _ in best], dtype=object),
                "candidate_probability": [prob for _, prob in best],
            }
        )

    def summary(self) -> list[str]:
        """Return the summary of the run as lines of text, as ``emea align`` prints it.

        It has the number of matches, their probabilities, the precision on links that were held
        out, and examples. If the run has a folder, it ends with commands to continue with.
        """
        run = self._fitted.run
        matches = [
            (match.source, match.target, match.probability)
            for match in self.predict()
            if match.target is not None
        ]
        given = {run.pair.source.entity_name(one) for one, _ in run.labels.tolist()}
        lines = result_lines(run.metrics, matches, given, run.pair)
        has_folder = (run.folder / ALIGNMENT_FILE).exists()
        return [
            *lines,
            *(continuing_lines(run.metrics, run.folder) if has_folder else []),
        ]

    def relations(
        self, threshold: float | None = None, least_inclusion: float | None = None
    ) -> list[TermMatch]:
        """Return which relations of the two graphs correspond, most evidence first.

        Pass the list to ``pandas.DataFrame`` for a data frame.

        Args:
            threshold: Minimum probability of the matches of entities that count.
            least_inclusion: Probability from which an inclusion is stated in ``mapping``.
        """
        return list(self._schema(threshold, least_inclusion).relations)

    def classes(
        self, threshold: float | None = None, least_inclusion: float | None = None
    ) -> list[TermMatch]:
        """Return which classes of the two graphs correspond, by their instances.

        Args:
            threshold: Minimum probability of the matches of entities that count.
            least_inclusion: Probability from which an inclusion is stated in ``mapping``.
        """
        return list(self._schema(threshold, least_inclusion).classes)

    def _schema(self, threshold: float | None, least_inclusion: float | None) -> Schema:
        decision, settings = self._decided(
            threshold=threshold, least_inclusion=least_inclusion
        )
        return run_schema(self._fitted.run, settings, decision)

    def evaluate(
        self,
        links: Iterable[tuple[str, str]],
        threshold: float | None = None,
        target_precision: float | None = None,
    ) -> Evaluation:
        """Evaluate the matches on links that ``fit`` was not given.

        Links whose source entity is in a link that ``fit`` was given are ignored and counted.

        Hit@k and MRR rank the targets of the evaluated links by probability. Only the candidates of
        an entity have one (``em.num_candidates``). Other targets count as missed, so Hit@5, Hit@10
        and MRR are lower bounds.

        Precision, recall and F1 evaluate the matches of ``predict``, which are chosen among all
        targets, for the source entities of the links. Other source entities are not evaluated,
        because it is unknown whether they have a counterpart.

        Args:
            links: Pairs of entity names, as for ``fit``.
            threshold: Minimum probability of a match; it does not change the ranking.
            target_precision: Choose the threshold that reaches this precision on the links held
                out for validation.

        Raises:
            DataError: If a link names an unknown entity, links contradict each other, or ``fit``
                was given all links.
        """
        run = self._fitted.run
        decision, _ = self._decided(
            threshold=threshold, target_precision=target_precision
        )
        cardinality = run.pair.cardinality
        given = link_ids(run.pair.source, run.pair.target, links, cardinality)
        seen = np.concatenate([run.labels.numpy(), run.split.supervision.validation])
        judged = unknown_pairs(given, seen, cardinality)
        if not len(judged):
            raise DataError(
                f"There is nothing to evaluate: fit was given all {len(given)} links."
                if len(given)
                else "There is nothing to evaluate: the list of links is empty."
            )
        ranks = filtered(candidate_ranks(decision.beliefs, judged), judged)
        ranking = ranking_metrics(ranks.in_pool)
        pairs = unknown_pairs(decision.answer.pairs().numpy(), seen, cardinality)
        answer = mapping_metrics(pairs[np.isin(pairs[:, 0], judged[:, 0])], judged)
        scores = {
            metric.attribute: ranking[metric.name]
            for metric in RANKING_METRICS
            if metric.in_python
        }
        scores |= {name: answer[name] for name in ("precision", "recall", "f1")}
        return Evaluation(
            **scores,
            num_links=len(judged),
            num_answered=int(answer["num_predicted"]),
            num_known=len(given) - len(judged),
        )

    def explain(self, source: str, target: str) -> Explanation:
        """Explain why a source entity is matched to a target entity, or is not."""
        explainer = self._fitted
        for side, name in (("source", source), ("target", target)):
            if not isinstance(name, str):
                raise DataError(
                    f"The {side} entity must be a name (str), got {described(name)}."
                )
        return explainer(explainer.source.find(source), explainer.target.find(target))

    def why(self, source: str, target: str) -> str:
        """Return the explanation as text."""
        return plain_text(self.explain(source, target))

    def show(self, path: str | Path = "alignment.html", is_opened: bool = True) -> Path:
        """Write the whole alignment as one HTML page, and open it if there is a display.

        The page has charts, a table of all source entities, the explanation of each match, and
        decisions to accept, reject or correct matches. It works offline.

        Args:
            path: The file to write.
            is_opened: Whether to open the page in the browser.

        Returns:
            The file.

        Raises:
            DataError: If the file cannot be written.
        """
        place = checked_path(path, "path")
        explainer = self._fitted
        # a temporary folder is gone when the page is read
        folder = explainer.run.folder if explainer.run.folder.is_dir() else None
        write_page(run_page(explainer, folder), place, is_opened)
        return place

    def suggest(self, count: int = 20) -> list[ToLabel]:
        """Return the source entities whose labels would help most, the most helpful first.

        Entities of the links that ``fit`` was given are not suggested.

        Args:
            count: Largest number of suggestions.

        Raises:
            ConfigError: If the count is not a positive whole number.
        """
        explainer = self._fitted
        if not isinstance(count, int) or count < 1:
            wanted = "count must be a whole number of at least 1"
            raise ConfigError(f"{wanted}, got {described(count)}.")
        pair = explainer.run.pair
        return [
            ToLabel(
                pair.source.entity_name(one.source),
                [
                    (pair.target.entity_name(target), prob)
                    for target, prob in one.candidates
                ],
                one.score,
                one.uncertainty,
            )
            for one in suggest(explainer, count)
        ]

    def _decided(
        self,
        *,
        top_k: int | None = None,
        threshold: float | None = None,
        target_precision: float | None = None,
        least_inclusion: float | None = None,
    ) -> tuple[Decision, ExportSettings]:
        """Select matches by the run's settings and those that replace them (``None`` keeps one)."""
        run = self._fitted.run
        settings = with_given(
            run.settings.own.export,
            top_k=_plain(top_k),
            threshold=_plain(threshold),
            target_precision=_plain(target_precision),
            least_inclusion=_plain(least_inclusion),
        )
        check_export(run.config, settings)
        return run_decision(run, settings), settings

    @property
    def _fitted(self) -> Explainer:
        if self._explainer is None:
            raise UserError(
                "This Aligner is not fitted. Call fit(source, target, links) first."
            )
        return self._explainer


def _plain(number: Any) -> Any:
    """Return a number of Python, because a config cannot contain numbers of numpy."""
    return number.item() if isinstance(number, np.generic) else number


def _checked_choice(group: str, given: object) -> Choice:
    """Return the option that a name or settings choose, if there is such an option."""
    chosen = choice(group, given)
    if chosen.option != AUTO:
        check_option(group, chosen.option)
    return chosen


def _settings_of(given: Mapping[str, object]) -> list[str]:
    """Return the overrides of the groups for which an option is given."""
    found = []
    for group, value in given.items():
        if value is not None:
            option, values = choice(group, value)
            found += [f"{group}={option}", *values]
    return found


def _checked_settings(settings: Sequence[str]) -> list[str]:
    """Return settings as a list; settings of the data are errors, because ``fit`` gets the data."""
    wanted = 'settings must be a list of strings such as ["em.iterations=3"]'
    if not isinstance(settings, Sequence) or isinstance(settings, str):
        raise ConfigError(f"{wanted}, got {described(settings)}.")
    for setting in settings:
        if not isinstance(setting, str):
            raise ConfigError(f"{wanted}, but one of them is {described(setting)}.")
        if setting.lstrip("+~").partition("=")[0].split(".")[0] == "data":
            raise ConfigError(
                f"{setting} has no effect here, because fit gets the graphs and links. Remove it."
            )
    return list(settings)
