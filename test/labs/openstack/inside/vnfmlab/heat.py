"""What is changed in Heat's engine: one defect mended, and pauses shortened."""
import eventlet
import sys
import types

from heat.common import context
from heat.common import timeutils
from heat.engine import resource  # noqa: F401  (loaded before the fork)
from heat.engine import scheduler
from heat.engine import stack


def mend_signals():
    """Signals to scaling policies work.

    Heat 19.0.0 with oslo.messaging 14.0.3: before a notification is sent, even by the "noop" driver, oslo.messaging
    takes the secrets out of the request's context. Heat's StoredContext is asked for its roles right after, has not
    loaded them yet, and tries to log in with what it no longer has: every signal ends in "Authorization failed". A
    context that has nothing to log in with has, from here on, no roles.
    """
    load = context.StoredContext._load_keystone_data

    def load_if_possible(self):
        if self.auth_token or self.auth_token_info or self.password or self.trust_id:
            load(self)
            return
        for attribute, nothing in (('_roles', []), ('_user_domain_id', None), ('_project_domain_id', None)):
            vars(self).setdefault(attribute, nothing)
        self._keystone_loaded = True

    context.StoredContext._load_keystone_data = load_if_possible


def shorten_pauses():
    """Heat waits less between two looks; what it does, and in which order, is as ever.

    A second after each leaf resource that it begins with becomes a fiftieth of it, a second between two looks at what
    it waits for a quarter, and the 62 seconds in all between its further attempts at a resource that fails to be made
    become three. Between attempts to delete there must remain time: a nested stack's ports have to go before a subnet can.
    """
    stack.eventlet = types.SimpleNamespace(**vars(eventlet))
    stack.eventlet.sleep = lambda seconds=0: eventlet.sleep(min(seconds, 0.02))

    look_again = scheduler.TaskRunner._sleep
    scheduler.TaskRunner._sleep = lambda self, seconds: look_again(self, min(seconds, 0.25) if seconds else seconds)

    backoff = timeutils.retry_backoff_delay

    def shorter(*args, **kwargs):
        deleting = sys._getframe(1).f_code.co_name == 'delete'
        return backoff(*args, **kwargs) * (0.5 if deleting else 0.05)

    timeutils.retry_backoff_delay = shorter
