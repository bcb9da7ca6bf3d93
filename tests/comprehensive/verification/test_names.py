"""``verify`` drives functions whatever they and their parameters are called."""

from comprehensive.verification import Options, verify

LOOPS = """
  meta_schedule
    meta_for (int i = 0; i < values / compare; i++)
      meta_for (int j = 0; j < compare; j++)
        malloc[i * compare + j] += free[i * compare + j][0];
"""
PROGRAM = f"""
int line(int values, int point, int compare, int strtoll, const float free[values][point], float malloc[values])
{{ {LOOPS} return strtoll; }}

void index(int values, int compare, const float free[values][1], float malloc[values])
{{ {LOOPS} }}

void compare(int values, int compare, const float free[values][1], float malloc[values])
{{ {LOOPS} }}
"""


def test_no_name_of_the_file_meets_one_of_the_driver():
    options = Options(points=3, dataflow_seconds=0, optimization="-O0")
    found = verify(PROGRAM, counters=("shared_memory",), strategies=("caching",), options=options)
    assert found.passed, found.table()
    assert all(row.points for row in found.leaves)
    assert len(found.leaves) == 3
