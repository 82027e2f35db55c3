"""The page of maps: what its link says, what it refuses, and that it fills in."""

import time

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from qkdemo.labs.registry import LABS
from qkdemo.maps.request import MAPPED
from qkdemo.messages import say
from tests.web.visit import complaints, link_of, visit


def filled(app: AppTest) -> AppTest:
    """The page when its map is whole."""
    for _ in range(200):
        if not [button for button in app.button if button.key == "map:stop"]:
            return app
        time.sleep(0.2)
        app.run()
    raise AssertionError("the map does not come to an end")


def title(app: AppTest) -> str:
    (heading,) = app.title
    return str(heading.value)


def test_it_opens_with_drift_and_says_which_dial_matters_on_which_side() -> None:
    app = filled(visit("map", {"cells": "17"}))
    assert not app.exception
    assert title(app).startswith("Plain attention changes along “Weight scale” alone.")
    assert len(app.get("vega_lite_chart")) == 2


@pytest.mark.parametrize("name", MAPPED)
def test_every_lab_has_its_map_its_dials_and_its_presets(name: str) -> None:
    app = visit("map", {"lab": name, "cells": "9"})
    assert not app.exception
    assert not complaints(app)
    assert app.selectbox(key="map:lab").value == name
    assert LABS[name].presets


def test_the_link_holds_lab_axes_ranges_measure_size_and_dials() -> None:
    link = {"x": "scale:1:10", "y": "d_head", "measure": "top_weight", "cells": "9", "gain": "3"}
    app = visit("map", link)
    assert not complaints(app)
    assert link_of(app) == link
    assert app.selectbox(key="map:y").value == "d_head"


def test_another_lab_begins_with_its_own_dials_and_axes() -> None:
    app = visit("map", {"x": "scale:1:10", "cells": "9", "gain": "3"})
    app.selectbox(key="map:lab").set_value("rope").run()
    assert not app.exception
    assert not complaints(app)
    assert link_of(app) == {"lab": "rope"}
    assert app.selectbox(key="map:x").value == "position"


def test_choosing_the_other_axis_dial_makes_them_change_places() -> None:
    app = visit("map", {"x": "scale:1:10", "y": "gain:1:100", "cells": "9"})
    app.selectbox(key="map:x").set_value("gain").run()
    assert link_of(app) == {"x": "gain:1:100", "y": "scale:1:10", "cells": "9"}
    assert not complaints(app)


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ({"lab": "models"}, "'models' has no map. These labs have one: arrows, drift"),
        ({"x": "gain", "y": "gain"}, "x and y are both gain. A map needs two dials"),
        ({"x": "gamma"}, "gamma does nothing when variant is l2; it acts for rms"),
        ({"x": "scale:1:1e9"}, "scale must be between 0.01 and 1000, but is 1"),
        ({"y": "<b>"}, "'<b>' is no numeric dial of this lab."),
        ({"measure": "loss"}, "'loss' is nothing that drift measures."),
    ],
)
def test_what_a_link_asks_in_vain_is_said_and_a_map_is_there_all_the_same(link: dict[str, str], said: str) -> None:
    app = visit("map", link | {"cells": "9"})
    assert not app.exception
    assert said in complaints(app)[0]
    assert app.selectbox(key="map:x").value


def test_a_remedy_that_has_another_dial_gets_that_dial() -> None:
    app = visit("map", {"variant": "rms", "cells": "9"})
    assert not complaints(app)
    assert app.selectbox(key="map:y").value == "gamma"
    app = visit("map", {"variant": "none", "cells": "9"})
    assert not complaints(app)
    assert app.selectbox(key="map:x").value == "scale"


def test_every_lab_with_a_map_leads_to_it() -> None:
    app = visit("epsilon", {"size": "0.01"})
    doors = [link.proto.label for link in app.get("page_link")]
    assert say("map.door") in doors


def test_two_maps_are_subtracted_and_the_link_says_which() -> None:
    app = filled(visit("map", {"cells": "9", "y": "d_head"}))
    app.selectbox(key="map:minus").set_value("plain").run()
    assert not app.exception
    assert link_of(app) == {"cells": "9", "y": "d_head", "minus": "plain"}
    assert title(filled(app)).startswith("L2 norm and learned scale g minus plain attention: above 0 in")
    assert len(app.get("vega_lite_chart")) == 1
    app.selectbox(key="map:minus").set_value("dial:variant").run()
    assert link_of(app)["minus"] == "variant=none"
    app.selectbox(key="map:value").set_value("rms").run()
    assert link_of(filled(app))["minus"] == "variant=rms"
    assert "minus RMSNorm" in title(app)
    app.selectbox(key="map:minus").set_value("").run()
    assert "minus" not in link_of(app)


def test_a_link_that_subtracts_several_dials_or_what_it_cannot() -> None:
    app = filled(visit("map", {"cells": "9", "minus": "seed=3,format=float16", "x": "scale", "y": "d_head"}))
    assert not app.exception
    assert not complaints(app)
    assert app.selectbox(key="map:minus").value == "seed=3,format=float16"
    app = visit("map", {"cells": "9", "minus": "foo"})
    assert "'foo' is no side of this map." in complaints(app)[0]
    assert app.selectbox(key="map:minus").value == ""


def test_the_cross_stands_where_this_visitors_dials_do_though_others_share_the_map() -> None:
    marks = []
    for scale in ("2", "50"):
        app = filled(visit("map", {"cells": "9", "scale": scale, "seed": "4"}))
        rows = app.get("vega_lite_chart")[0]
        table = pa.ipc.open_stream(rows.proto.datasets[0].data.data if rows.proto.datasets else rows.proto.data.data)
        marks += [row["x"] for row in table.read_all().to_pylist() if row["layer"] == "cross"]
    assert marks == [2.0, 50.0]


def test_where_training_survives_over_other_dials_stands_in_the_link() -> None:
    app = filled(visit("map", {"cells": "9"}))
    app.segmented_control(key="map:takeaway").set_value(say("phases.tab")).run()
    assert not app.exception
    app.selectbox(key="phases:y").set_value("n_layers").run()
    assert not app.exception
    assert link_of(app)["phases"] == "learning_rate:0.002:0.5;n_layers:1:4;5;3;none,rms"
    app.selectbox(key="phases:x").set_value("n_layers").run()
    assert link_of(app)["phases"] == "n_layers:1:4;learning_rate:0.002:0.5;5;3;none,rms"
    app.multiselect(key="phases:remedies").set_value(["none", "softcap"]).run()
    assert link_of(app)["phases"].endswith(";none,softcap")
    app.selectbox(key="phases:share").set_value("spiked").run()
    assert link_of(app)["share"] == "spiked"
    app.selectbox(key="phases:share").set_value("solved").run()
    assert "share" not in link_of(app)


def test_a_link_to_a_diagram_opens_it_and_one_that_is_none_says_so() -> None:
    app = visit("map", {"cells": "9", "phases": "learning_rate;beta2;3;1;rms"})
    assert app.selectbox(key="phases:y").value == "beta2"
    app = visit("map", {"cells": "9", "phases": "learning_rate;steps;3;1;rms"})
    assert "steps is no axis of this diagram" in " ".join(complaints(app))
    assert app.selectbox(key="phases:y").value == "qk_start"
    app = visit("map", {"cells": "9", "share": "spiked"})
    assert app.selectbox(key="phases:share").value == "spiked"
    assert say("phases.counted.spiked") in " ".join(each.value for each in app.markdown)
    app = visit("map", {"cells": "9", "share": "most"})
    assert "'most' is none of solved, partly" in " ".join(complaints(app))
