"""Placement for uWSGI."""
from placement.wsgi import init_application

application = init_application()
