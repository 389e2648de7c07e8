"""The figures that the papers print."""

CLASSES = ("CGA", "RGA", "FGA", "FRGA", "RS")
"""The classes of S. Robert, S. Zertal, G. Vaumourin (2020)."""

TABLE_IV = {
    "raw": (8640.0, 197.33, 49.49, 136.00, 625.00, 185.00),
    "averaged": (540.0, 197.33, 34.60, 151.75, 327.37, 188.81),
}
"""Its table IV: size; mean, standard deviation, least, most, median in seconds."""

DEFAULT_OF_TABLE_IV = 172.69
"""Its default's mean, s."""

FIGURE_5_MEDIAN = {"CGA": "none", "RGA, SEDR 10 %": "5.18 %"}
"""What its text says of its figure 5."""

TABLE_VI: dict[str, tuple[float, ...]] = {
    "SuccessRate": (13.3, 63.3, 50.0, 56.6, 2.0),
    "DistOptim": (0.55, 0.20, 0.44, 0.23, 0.77),
    "NbrSteps": (29.5, 22.7, 24.1, 20.83, 34.3),
    "AvgDistOptim": (18.1, 14.0, 14.71, 12.28, 27.9),
    "RegCost": (13.6, 8.2, 9.81, 7.02, 20.2),
    "InferiorDefault": (48.0, 64.0, 64.0, 70.0, 27.8),
    "ElTime": (222.6, 265.2, 1084.1, 836.8, 146.5),
    "ScoreOptim": (0.65, 0.98, 0.68, 0.89, 0.0),
    "ScoreStability": (0.54, 0.84, 1.0, 0.89, 0.0),
    "Score": (0.54, 1.0, 0.7, 0.96, 0.0),
}
"""Its table VI, the classes in that order."""

TABLE_VI_NOISE = (
    "",
    "SEDR (p = 10 %)",
    "quadratic (p = 5 %)",
    "SEDR (p = 40 %), quadratic (p = 5 %)",
    "",
)
"""The best noise reduction of each class there."""

HEURISTICS = ("SM", "GA", "SA")
"""S. Robert, S. Zertal, G. Goret (2019): surrogate, genetic algorithm, simulated annealing."""

TABLE_2: dict[str, dict[str, tuple[float, ...]]] = {
    "SBB": {
        "S": (100.0, 40.0, 20.0),
        "IS": (82.0, 43.0, 47.0),
        "DistOpt": (0.0, 4.4, 7.1),
        "AvgDist": (25.91, 12.85, 19.19),
        "EC": (2398.0, 984.0, 1220.0),
        "ET": (48.2, 15.8, 12.1),
        "Gain": (9.8, 20.5, 13.1),
    },
    "SRO": {
        "S": (0.0, 10.0, 0.0),
        "IS": (0.0, 20.0, 0.0),
        "DistOpt": (0.1, 5.4, 8.9),
        "AvgDist": (9.14, 8.35, 9.32),
        "EC": (938.0, 279.0, 305.0),
        "ET": (31.5, 12.6, 10.5),
        "Gain": (30.1, 38.4, 21.3),
    },
}
"""Its table 2 and, as `Gain`, table 3, the heuristics in that order."""

DEFAULT_OF_SBB = 122.0
"""The default's time, s, that its tables 2 and 3 give for SBB, nearly."""

SHARES = {"SBB": (77.57, 51.24), "SRO": (89.47, 59.25)}
"""Its shares of runs below the default's time, and of trajectories below the mean throughout, %."""

FIGURE_5: dict[str, tuple[float, dict[str, tuple[int, str]]]] = {
    "M2-Mailserver-HDD3": (
        4.5,
        {
            "RS": (1, "above 90 %, the highest"),
            "BO": (2, "above 90 %"),
            "GA": (3, "above 90 %"),
            "DQN": (4, "above 90 %"),
            "SA": (5, "about 80 %"),
        },
    ),
    "M2-Fileserver-HDD3": (
        0.2,
        {
            "BO": (1, "65 %"),
            "GA": (1, "65 %"),
            "SA": (3, "below 40 %"),
            "RS": (3, "below 40 %"),
            "DQN": (5, "below 40 %, the lowest"),
        },
    ),
}
"""Figure 5 of Z. Cao, V. Tarasov, S. Tiwari, E. Zadok (2018), after 5 hours, as its text has it.

For each system the share of near-optimal configurations, %, and for each method its rank and the
share of studies.
"""

TABLE_5 = {
    "ext2": ("I/O scheduler 0.68", "-"),
    "ext3": ("journal 0.90, then block size 0.84", "journal 0.96, then block size 0.72"),
    "ext4": ("journal 0.99, then block size 0.92", "journal 0.96, then atime 0.68"),
    "xfs": ("block size 0.94, then groups 0.82", "-"),
    "btrfs": ("-", "-"),
    "nilfs2": (
        "block size 0.99, then I/O scheduler 0.94",
        "I/O scheduler 0.80, then block size 0.62",
    ),
    "reiserfs": ("I/O scheduler 0.99, then journal 0.74", "journal 0.99"),
}
"""Its table 5: the R² of the two parameters that matter most, of two workloads on SSDs.

The text gives the first of two for ext3, xfs and reiserfs; elsewhere the greater is taken to be it.
"""
