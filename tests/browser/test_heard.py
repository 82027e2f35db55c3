"""A track, a quiz and a run by keyboard alone (Tab, arrows, Enter), with all that is heard on the way compared."""

import re

from playwright.sync_api import Browser, expect

from qkdemo.messages import say
from qkdemo.tracks.catalogue import TRACKS
from qkdemo.tracks.stop import Choose
from tests.browser.heard.ear import Ear
from tests.browser.test_everyone import at
from tests.browser.test_lesson import link, query
from tests.browser.test_pages import settled
from tests.browser.test_quiz import HIDE, LINK
from tests.browser.test_training import SMALL
from tests.serving import SEEDS


def test_the_beginners_track_is_heard_and_walked_to_its_end(server: str, browser: Browser) -> None:
    stops = TRACKS["beginner"]
    with at(browser, server + link(("beginner", stops[0])), reduced_motion="reduce") as page:
        ear = Ear(page, "beginner")
        ear.press("Tab", "Enter")
        for stop in stops:
            ear.section(f"{stop.name}, asked")
            if isinstance(stop.ask, Choose):
                ear.to("radio")
                ear.press("ArrowDown")
            else:
                ear.to("slider")
                ear.press("ArrowRight")
            expect(page).to_have_url(re.compile("said="))
            expect(page.get_by_role("button", name=say("lesson.run"))).to_be_visible()  # no longer without a prediction
            settled(page)
            ear.to("button", say("lesson.run"))
            ear.press("Enter")
            expect(page.locator(".verdict")).to_be_focused()
            ear.section(f"{stop.name}, answered")
            ear.to("button", "Next" if stop is not stops[-1] else "To the end")
            ear.press("Enter")
            settled(page)
        ear.section("the end")
        assert query(page)["said"].count("!") == len(stops)
        ear.close()


def test_a_quiz_is_heard_answered_and_sent(server: str, browser: Browser) -> None:
    with at(browser, f"{server}/{LINK}&{HIDE}", reduced_motion="reduce") as page:
        ear = Ear(page, "quiz")
        ear.press("Tab", "Enter")
        ear.section("asked")
        for _ in range(7):
            ear.to("radio")
            ear.press("ArrowDown")
        settled(page)
        ear.to("button", "Send my answers")
        ear.section("answered")
        ear.press("Enter")
        expect(page.get_by_role("heading", level=2).first).to_be_focused()
        ear.section("sent")
        ear.close()


def test_a_run_is_heard_stopped_and_looked_back_at(server: str, browser: Browser) -> None:
    run = f"{SMALL}&seed={next(SEEDS)}&steps=2000&speed=2"  # slow: neither model has learnt when Stop is reached
    with at(browser, f"{server}/training?{run}", reduced_motion="reduce") as page:
        # With three steps every curve has a first, a last and one between, so the words are the same on any machine.
        expect(page.locator(".bar .status")).to_contain_text(re.compile(r"step ([3-9]|\d{2,}) of 2"))
        ear = Ear(page, "training", live=True)
        ear.press("Tab", "Enter")
        ear.to("button", "Stop")
        ear.press("Enter")
        ear.section("stopped")
        ear.to("slider")
        ear.press("Home", "ArrowRight")
        ear.section("looked back at")
        ear.close()
