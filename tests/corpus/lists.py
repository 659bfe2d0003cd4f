"""Small term lists for the tests, of every shape the kernel knows."""

from evenhand.corpus.term_lists import TermGroup, TermList

SMALL = TermList(
    {"joy": ("happy", "joy", "über-froh"), "fear": ("fear", "afraid", "scared to death", "straße")},
    (
        TermGroup("gender", "female", ("she", "her", "mother-in-law", "ma'am", "élève")),
        TermGroup("gender", "male", ("he", "him", "father", "man")),
        TermGroup("race", "black", ("black man", "african american", "african-americans")),
        TermGroup("religion", "x", ("incomprehensibilities", "a" * 40, "i", "99", "snake_case", "father")),
    ),
)
"""Six categories: a set of them is one number."""


def wide(axes: int = 9, groups: int = 10) -> TermList:
    """The same terms in many groups: more categories than fit in 64 bits."""
    terms = [term for group in SMALL.groups for term in group.terms] + list(SMALL.emotions["fear"])
    made = [
        TermGroup(
            f"axis{axis}", f"group{number}", tuple(terms[(axis + number + i) % len(terms)] for i in range(3))
        )
        for axis in range(axes)
        for number in range(groups)
    ]
    return TermList(SMALL.emotions, tuple(made))
