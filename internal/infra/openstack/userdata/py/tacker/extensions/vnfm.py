"""The exception that user data scripts raise on purpose."""


class LCMUserDataFailed(Exception):
    message = "LCM user data %(reason)s"

    def __init__(self, message=None, **kwargs):
        self.kwargs = kwargs
        if message is None:
            message = self.message % {"reason": kwargs.get("reason", "failed")}
        self.msg = message
        super().__init__(message)
